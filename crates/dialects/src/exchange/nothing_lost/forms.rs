//! Requests that say what goldens say in the other ways a dialect has for it, or that nobody should
//! send but some do.

use tollgate_wire::Dialect;

pub(super) const FORMS: &[(Dialect, &str)] = &[
    // Limits under both names, one stop sequence alone, switches that are off, numbers in unusual
    // forms.
    (
        Dialect::Chat,
        r#"{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":9,"max_completion_tokens":12,"stop":"END",
        "stream":false,"stream_options":null,"logprobs":false,"top_logprobs":2,"temperature":1.0,"top_p":1e0,"top_k":40,"n":1,"seed":-0,
        "user":"u","safety_identifier":"s","service_tier":"own_word","modalities":["text"],"audio":null,"tools":[],"functions":[]}"#,
    ),
    // Content in all shapes, by all roles.
    (
        Dialect::Chat,
        r#"{"model":"m","max_completion_tokens":12,"max_tokens":99,"stop":[],"messages":[{"role":"developer","name":"d","content":[{"type":"text","text":"a"}]},
        {"role":"user","content":[]},{"role":"user","content":""},{"role":"user","name":"n","content":[{"type":"text","text":""},
        {"type":"image_url","image_url":"https://x.example/a.png"},{"type":"image_url","image_url":{"url":"data:image/jpg;base64,QU-_","detail":null}},
        {"type":"video_url","video_url":{"url":"https://x.example/a.mp4"}},{"type":"file","file":{"file_id":"file-1"}},
        {"type":"file","file":{"file_data":"QUJD"}},{"type":"input_audio","input_audio":{"data":"QQ","format":"wav"}},{"type":"odd","odd":[1]}]},
        {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}],"refusal":"No."},
        {"role":"assistant","refusal":null,"annotations":[],"audio":{"id":"audio_1"},"content":null},{"role":"assistant"},
        {"role":"assistant","content":"","reasoning":"Hm.","phase":"commentary","name":"bot"},{"role":"user","content":"b"}]}"#,
    ),
    // Calls: late results, twice and in another order; no arguments, an object of them, no type,
    // odd ids and names.
    (
        Dialect::Chat,
        r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[
        {"id":"a/b c","type":"function","index":0,"function":{"name":"odd name","arguments":""}},
        {"id":"2","function":{"name":"g","arguments":{"x":1}}},{"id":"3","type":"custom","custom":{"name":"h","input":"free"}}]},
        {"role":"tool","tool_call_id":"3","name":"h","content":[{"type":"text","text":"r"}]},{"role":"user","content":"wait"},
        {"role":"tool","tool_call_id":"2","content":"r","is_error":true,"cache_control":{"type":"ephemeral"}},
        {"role":"tool","tool_call_id":"a/b c","content":"1","is_error":false},{"role":"tool","tool_call_id":"a/b c","content":"2"}],
        "tools":[{"function":{"name":"odd name","parameters":null}},{"type":"function","function":{"name":"g","description":null,"strict":false,
        "parameters":{"properties":{}}},"cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"web_search","q":1}],
        "tool_choice":{"type":"function","name":"g"},"parallel_tool_calls":true}"#,
    ),
    // Legacy functions beside tools.
    (
        Dialect::Chat,
        r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","function_call":{"name":"f","arguments":"{}"},"content":null},
        {"role":"function","name":"f","content":null}],"functions":[{"name":"f","description":"d"},{"name":"g","parameters":{}}],
        "tools":[{"type":"function","function":{"name":"t"}}],"function_call":{"name":"f"}}"#,
    ),
    (
        Dialect::Chat,
        r#"{"model":"m","messages":[{"role":"user","content":"a"}],"reasoning":{"effort":"HIGH","enabled":false,"exclude":true,"summary":"auto"},
        "response_format":{"type":"text"},"tool_choice":"none","verbosity":"odd"}"#,
    ),
    (
        Dialect::Chat,
        r#"{"model":"m","messages":[{"role":"user","content":"a"}],"reasoning_effort":"own_word","reasoning":{"effort":"low","enabled":true},
        "response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","strict":null}},"function_call":"auto"}"#,
    ),
    // The assistant begins, nobody answers, the system speaks at the end; results without a call.
    (
        Dialect::Anthropic,
        r#"{"model":"m","max_tokens":9,"stream":false,"system":[{"type":"text","text":""},{"type":"image","source":{"type":"url","url":"https://x.example/a"}}],
        "messages":[{"role":"assistant","content":"a"},{"role":"assistant","content":[{"type":"text","text":""}]},{"role":"user","content":""},
        {"role":"user","content":[]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"none","content":[],"is_error":false},
        {"type":"tool_result","tool_use_id":"a/b","content":"","cache_control":{"type":"ephemeral","ttl":"5m"}},
        {"type":"tool_result","content":[{"type":"text","text":""},{"type":"search_result","source":"s","title":"t","content":[]}]}]},
        {"role":"system","content":[{"type":"text","text":"s","cache_control":null}]}],"cache_control":{"type":"ephemeral","ttl":"1h"}}"#,
    ),
    (
        Dialect::Anthropic,
        r#"{"model":"m","max_tokens":9,"system":"","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"_-"}},
        {"type":"document","title":null,"context":"c","source":{"type":"content","content":[{"type":"text","text":"a"}]}},
        {"type":"document","source":{"type":"text","media_type":"text/markdown","data":"d"},"citations":{"enabled":false}},{"type":"odd"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"x y","name":"odd name","input":null,"caller":{"type":"direct"}},
        {"type":"tool_use","id":"2","name":"g","input":[1.0]},{"type":"thinking","thinking":"","signature":""}]}],
        "tools":[{"type":"custom","name":"odd name","input_schema":{"type":"string"},"strict":false,"defer_loading":true},{"name":"g"}],
        "tool_choice":{"type":"tool","name":"g","disable_parallel_tool_use":false},"thinking":{"type":"between_tools","display":"omitted"},
        "output_config":{"effort":"low","format":null},"temperature":1,"top_p":0.90,"top_k":0,"metadata":{"user_id":null,"more":1},
        "service_tier":"auto","stop_sequences":[],"mcp_servers":[],"container":null}"#,
    ),
    (
        Dialect::Anthropic,
        r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":[],"thinking":{"type":"disabled","display":"full"},
        "output_config":{"effort":"xhigh"},"metadata":{},"stop_sequences":["a"," "]}"#,
    ),
    // Items with ids, of kinds that only the provider knows, out of order; texts under unusual
    // names.
    (
        Dialect::Responses,
        r#"{"model":"m","instructions":"","input":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[
        {"type":"output_text","text":"a","annotations":[{"type":"url_citation"}],"logprobs":[]},{"type":"refusal","refusal":"no"}]},
        {"role":"assistant","content":[{"type":"input_text","text":"b"}]},{"role":"system","content":""},{"role":"user","content":[]},
        {"role":"user","content":[{"type":"output_text","text":"c"},{"type":"input_image","file_id":"file_1"},{"type":"input_file","file_id":"file_2"},
        {"type":"input_file","file_url":"https://x.example/a.pdf","filename":"a"},{"type":"input_file","file_data":"QUJD"},
        {"type":"input_audio","input_audio":{"data":"QQ","format":"mp3"}},{"type":"input_video","video_url":"data:video/mp4;base64,QQ"},{"type":"odd"}]},
        {"type":"reasoning","id":"rs_1","status":null,"summary":[],"content":[{"type":"reasoning_text","text":"t"}],"encrypted_content":null},
        {"type":"function_call_output","id":"fco_1","call_id":"c","output":[],"status":"incomplete"},
        {"type":"function_call","id":"fc_1","call_id":"c","name":"odd name","arguments":"","status":"completed","namespace":"n"},
        {"type":"compaction","encrypted_content":"x"}],"max_output_tokens":null,"store":true,"background":false,"user":"u","stream":false}"#,
    ),
    (
        Dialect::Responses,
        r#"{"model":"m","input":[],"tools":[{"type":"namespace","name":"empty","description":"d","tools":[]},{"type":"function","name":"odd name","strict":null},
        {"type":"namespace","name":"n","tools":[{"type":"function","name":"f","parameters":null},{"type":"custom","name":"g"}]},{"type":"mcp","server_label":"s"},
        {"type":"web_search_preview","search_context_size":"low"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},
        {"type":"mcp","server_label":"s"}]},"reasoning":{"effort":null,"generate_summary":"auto","context":"all"},"text":{"format":{"type":"text"}},
        "top_logprobs":0,"presence_penalty":0.0,"frequency_penalty":1,"parallel_tool_calls":false,"safety_identifier":"s","user":"u"}"#,
    ),
    (
        Dialect::Responses,
        r#"{"model":"m","input":"","instructions":null,"tools":[],"tool_choice":"required","reasoning":{},"text":{"verbosity":null},"metadata":null}"#,
    ),
    // A content alone, without a role; calls with and without ids and arguments; signatures
    // anywhere.
    (
        Dialect::Gemini,
        r#"{"contents":{"parts":[{"text":""},{"text":"a","thoughtSignature":"c2ln"}]},"systemInstruction":"S","generationConfig":{},"tools":[],
        "serviceTier":"STANDARD","model":"models/m","labels":{}}"#,
    ),
    (
        Dialect::Gemini,
        r#"{"contents":[{"role":"model","parts":[{"text":"one","thought":true},{"text":"two","thought":true,"thoughtSignature":"c2ln"},
        {"text":"","thought_signature":"c2ln"},{"text":"said","thought":false},{"functionCall":{"name":"f"}},
        {"functionCall":{"id":"1","name":"odd name","args":null},"thoughtSignature":"skip_thought_signature_validator"},
        {"executableCode":{"code":"1"}},{"codeExecutionResult":{"outcome":"OK"}}]},{"role":"function","parts":[
        {"functionResponse":{"id":"1","name":"odd name","response":{"error":"e","more":1}}},
        {"functionResponse":{"name":"f","response":{"a":1.0},"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ"}}],"willContinue":false}}]},
        {"role":"system","parts":[]},{"parts":[{"fileData":{"fileUri":"https://x.example/v","mimeType":"video/mp4"},"videoMetadata":{"fps":1}},
        {"inline_data":{"mime_type":"image/png","data":"_-","displayName":"d"},"mediaResolution":{"level":"LOW"}},
        {"inline_data":{"mime_type":"application/pdf","data":"QUJD","display_name":"d.pdf"}},{"inlineData":{"mimeType":"text/csv","data":"QQ","displayName":""}}]},{"role":"user"}],
        "system_instruction":{"role":"system","parts":[{"text":"S"},{"text":""}]},"tools":[{"functionDeclarations":[{"name":"f"},{"name":"odd name","behavior":"BLOCKING"}],
        "googleSearch":{"timeRangeFilter":{"startTime":"t"}},"codeExecution":{}},{"functionDeclarations":[]},{}],
        "toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"]},"retrievalConfig":{"languageCode":"de"}}}"#,
    ),
    (
        Dialect::Gemini,
        r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":-1,"thinkingLevel":"low"},
        "temperature":0.0,"responseMimeType":"text/x.enum","responseLogprobs":false,"logprobs":3,"stopSequences":[],"candidateCount":2,"responseModalities":["TEXT"]},
        "toolConfig":{"functionCallingConfig":{"mode":"MODE_UNSPECIFIED"}},"safetySettings":[]}"#,
    ),
    (
        Dialect::Gemini,
        r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0,"includeThoughts":false,
        "thinkingLevel":"THINKING_LEVEL_UNSPECIFIED"},"responseMimeType":"application/json","maxOutputTokens":5},"cached_content":"cachedContents/1"}"#,
    ),
];
