//! Charges, row by row, over all units, pots, groups and roundings.

use super::{catalog, table};

const CATALOG: &str = r#"
[group.partner]
multiplier = "0.8"
[group.third]
multiplier = "1/3"
[group.house]
multiplier = 5

[model.chat]
enable_groups = ["default", "partner", "third", "house"]
price = { input = 3_000_000, output = 15_000_000, cache_read = 300_000, cache_write = 3_750_000, cache_write_1h = 6_000_000 }
paid = { input = 2_700_000, output = 13_500_000, cache_read = 270_000, cache_write = 3_375_000, cache_write_1h = 5_400_000 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.plain]
price = { input = 1, output = 7 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.voice]
input_modalities = ["text", "audio"]
output_modalities = ["text", "audio"]
price = { input = 4_000_000, output = 16_000_000, audio_input = 32_000_000, audio_output = 64_000_000, per_call = 100 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.speech]
billing_unit = "characters"
price = { input = 15_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.ears]
billing_unit = "audio_duration"
price = { input = 6_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.picture]
billing_unit = "per_call"
price = { per_call = 40_000 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.film]
billing_unit = "per_second"
price = { video_second = 100_001 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.film.tier]]
name = "pro"
when = [{ dim = "request_attr", path = "metadata.mode", equals = "pro" }]
multiplier = "133/100"
[[model.film.tier]]
name = "4k"
when = [{ dim = "request_attr", path = "metadata.mode", equals = "4k" }]
multiplier = 5

[model.gift]
price = { input = 0, output = 0 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.dear]
price = { input = 1_000_000_000_000, output = 1_000_000_000_000, per_call = 1_000_000_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;

#[test]
fn charges_are_what_the_table_says() {
    table::check(
        &catalog(CATALOG),
        "
        # tokens, each kind at its own price
        chat    |                       |                                | - | 0
        chat    |                       | input=1_000_000                | - | 3
        chat    |                       | output=1_000_000               | - | 15
        chat    |                       | input=1000 output=500          | - | 0.0105
        chat    |                       | input=1                        | - | 0.000003
        chat    |                       | output=1                       | - | 0.000015
        chat    |                       | cache_read=1                   | - | 0.0000003
        chat    |                       | cache_write=1                  | - | 0.00000375
        chat    |                       | cache_write_1h=1               | - | 0.000006
        chat    |                       | input=12 cache_read=4000 cache_write=300 output=77 | - | 0.003516
        # a kind of token without a price of its own is an ordinary one
        chat    |                       | image_input=1000               | - | 0.003
        chat    |                       | audio_output=1000              | - | 0.015
        plain   |                       | cache_read=1_000_000           | - | 0.000001
        # accounts that have topped up
        chat    | topped-up             | input=1000 output=500          | - | 0.00945
        chat    | topped-up             | cache_read=1                   | - | 0.00000027
        plain   | topped-up             | input=1_000_000                | - | 0.000001
        # groups; the multiplier applies to the exact sum, which is rounded once
        chat    | group=partner         | input=1000 output=500          | - | 0.0084
        chat    | group=partner topped-up | input=1000 output=500        | - | 0.00756
        chat    | group=third           | input=1000 output=500          | - | 0.0035
        chat    | group=third           | cache_read=1                   | - | 0.0000001
        chat    | group=third           | cache_write=1 cache_read=1     | - | 0.00000135
        chat    | group=house           | input=1                        | - | 0.000015
        plain   | group=partner         | input=1                        | - | the model is not offered to this group
        # one rounding, up to the next nano-USD: seven output tokens at 0.007 nano-USD
        plain   |                       | output=1                       | - | 0.000000001
        plain   |                       | input=1                        | - | 0.000000001
        plain   |                       | input=999 output=1             | - | 0.000000002
        plain   |                       | input=993 output=1             | - | 0.000000001
        plain   |                       | input=1000                     | - | 0.000000001
        plain   |                       | input=1001                     | - | 0.000000002
        # sound in and out, and a price per call beside the tokens
        voice   |                       | input=10 audio_input=100 audio_output=50 output=5 per_call=1 | - | 0.00662
        # characters: each is one token; the speech that comes out is counted and free
        speech  |                       | input=1000 output=900          | - | 0.015
        speech  |                       | input=1                        | - | 0.000015
        # recordings: whole seconds, each 50/3 tokens, exactly; the transcript is free
        ears    |                       | input=1                        | - | 0.0001
        ears    |                       | input=60 output=50_000         | - | 0.006
        # per call and per second
        picture |                       | per_call=1                     | - | 0.04
        picture |                       | per_call=4                     | - | 0.16
        film    |                       | video_second=5                 | - | 0.500005
        film    | metadata.mode=std     | video_second=5                 | - | 0.500005
        film    | metadata.mode=pro     | video_second=5                 | pro | 0.66500665
        film    | metadata.mode=4k      | video_second=10                | 4k | 5.00005
        # zero is a price
        gift    |                       | input=1_000_000 output=5       | - | 0
        # what is not priced is refused, never free
        picture |                       | input=1                        | - | the model has no price for input
        chat    |                       | video_second=1                 | - | the model has no price for video_second
        film    |                       | per_call=1                     | - | the model has no price for per_call
        # the edge of 64 bits
        dear    |                       | per_call=9_223                 | - | 9223000000
        dear    |                       | per_call=9_224                 | - | the charge is too large to be an amount of money
        dear    |                       | input=18_446_744_073_709_551_615 | - | the charge is too large to be an amount of money
        dear    |                       | input=18_446_744_073_709_551_615 per_call=18_446_744_073_709_551_615 | - | the charge is too large to be an amount of money
        ",
    );
}
