//! Reads a form with files within limits of size and time: small fields as text, files into the
//! spool or past it to a provider, watched while they arrive. What an Idempotency-Key stands for,
//! where there is one, is made on the way, of names, values and contents in their order; the
//! boundary, which is drawn anew for each try, has no part in it.

use super::reading;
use super::unpack::Unpacking;
use crate::app::App;
use crate::door::bodies::{BodyShare, SMALL, Whose};
use crate::door::passing::{ForwardedFile, MayPass, PassLook, PassWay, UploadedFile};
use crate::door::spool::{FileWatch, IN_MEMORY, SpoolTerms, Spooling};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use axum::body::Body;
use bytes::Bytes;
use http::header;
use http::request::Parts;
use http_body_util::BodyExt as _;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tollgate_upstream::PassingUpload;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;
use tollgate_wire::multipart::{Bad, FormEvent, FormLimits, FormPart, FormReader, PartHead, whole_form};

/// What a form of one endpoint may carry.
#[derive(Clone, Copy, Debug)]
pub struct FormRules {
    pub parts: usize,
    /// Of one field.
    pub field_bytes: u64,
    pub files: usize,
    /// Of one file, whatever the model allows.
    pub file_bytes: u64,
    /// It may come packed with zstd, and is unpacked on the way.
    pub packed: bool,
}

/// A field that is no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormField {
    pub name: String,
    pub text: String,
}

/// A file of a form, whole.
pub struct FormFile<W> {
    /// The name of the field.
    pub name: String,
    pub file: UploadedFile,
    /// What watched it pass.
    pub watch: W,
}

/// A form that was read.
pub struct ReadForm<W> {
    pub fields: Vec<FormField>,
    pub files: Vec<FormFile<W>>,
    /// What an Idempotency-Key stands for; without one it says nothing of files.
    pub print: [u8; 32],
    /// What the fields take of the budget: to be owned as long as they are.
    pub room: BodyShare,
}

/// How a file is to be taken, said when it begins and the fields before it are known.
pub struct TakeFile<W> {
    pub watch: W,
    /// The most bytes, where the model allows fewer than the endpoint.
    pub most: Option<u64>,
    /// Who decides by its beginning that it passes; none: it is spooled.
    pub pass: Option<Box<dyn MayPass>>,
}

impl<W> TakeFile<W> {
    pub fn spooled(watch: W, most: Option<u64>) -> TakeFile<W> {
        TakeFile { watch, most, pass: None }
    }
}

/// What can still come of a form when a file of it begins, where the file may pass: the form says
/// its length, it is more than memory would hold, and its account seems able to pay.
#[derive(Clone, Copy, Debug)]
pub struct FormRest {
    /// The most bytes that the file can have.
    pub most: u64,
    /// The length of the form's last boundary, with the line end and all four dashes.
    pub closing: usize,
}

/// The first bytes of a file, which say what it is.
#[derive(Default)]
pub struct FirstBytes(pub Vec<u8>);

impl FileWatch for FirstBytes {
    fn piece(&mut self, bytes: &[u8]) {
        let room = 64usize.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Makes the print of a file while it passes, where it is wanted, and lets another watch it.
struct Printed<W> {
    hash: Option<Sha256>,
    watch: W,
}

impl<W: FileWatch> FileWatch for Printed<W> {
    fn piece(&mut self, bytes: &[u8]) {
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        self.watch.piece(bytes);
    }
}

/// Whether the body is a form.
pub fn is_form(parts: &Parts) -> bool {
    content_type(parts).trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

fn content_type(parts: &Parts) -> &str {
    parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// What is said of a form that cannot be read.
pub fn unreadable(bad: Bad) -> Refusal {
    let text = match bad {
        Bad::NoBoundary => "The Content-Type of a form must name its boundary.",
        Bad::Syntax => "The form cannot be read: a part has no name, or its framing is wrong.",
        Bad::Unfinished => "The form ends before its last boundary.",
        Bad::TooManyParts => "The form has too many parts.",
        Bad::TooLong => "The headers of a part of the form are too long.",
    };
    Refusal::new(Code::InvalidRequest, text)
}

/// The parts of a form that is there as a whole.
pub fn parts_of(content_type: &str, limits: FormLimits, body: Bytes) -> Result<Vec<FormPart>, Refusal> {
    whole_form(content_type, limits, body).map_err(|(bad, field)| match field {
        Some(field) if bad == Bad::TooLong => {
            let text = format!("`{field}` is longer than {} MiB.", limits.field_bytes.min(limits.file_bytes) >> 20);
            Refusal::about(Code::InvalidParameter, &field, text)
        }
        _ => unreadable(bad),
    })
}

/// Reads the form of a request. `begin` is asked for each file how it is to be taken.
pub async fn read<W: FileWatch>(
    app: &App,
    caller: &Caller,
    parts: &Parts,
    body: Body,
    rules: FormRules,
    begin: impl FnMut(&PartHead, &[FormField], Option<FormRest>) -> Result<TakeFile<W>, Refusal>,
) -> Result<ReadForm<W>, Refusal> {
    if !is_form(parts) {
        let text = "The body must be a form with `Content-Type: multipart/form-data`.";
        return Err(Refusal::about(Code::UnsupportedMediaType, "Content-Type", text));
    }
    let packed = rules.packed && reading::is_packed(&parts.headers);
    // A few bytes can stand for any number: what is packed has the bound of other bodies.
    let limits = &app.settings.limits;
    let largest = if packed { limits.body_bytes } else { limits.upload_bytes };
    let declared = if packed { None } else { reading::declared_length(&parts.headers, largest)? };
    let rules = FormRules { file_bytes: rules.file_bytes.min(largest as u64), ..rules };
    let limits = FormLimits { parts: rules.parts, field_bytes: rules.field_bytes, file_bytes: rules.file_bytes };
    let reader = FormReader::new(content_type(parts), limits).map_err(unreadable)?;
    let mut reading = FormReading {
        app,
        caller,
        parts,
        rules,
        begin,
        // Where more is announced than would stay in memory, the beginning of it need not either.
        in_memory: if declared.is_some_and(|all| all > 2 * IN_MEMORY) { SMALL } else { IN_MEMORY },
        whose: None,
        room: app.bodies.room(Whose::Penniless, 0).await?,
        taken: 0,
        declared: declared.map(|length| length as u64),
        sending: Duration::ZERO,
        print: Sha256::new(),
        open: None,
        fields: Vec::new(),
        files: Vec::new(),
        unpacking: packed.then(Unpacking::new),
    };
    if declared.is_some_and(|length| length > SMALL) {
        reading.large().await?;
    }
    reading.all(reader, body, largest).await?;
    let FormReading { fields, files, print, room, .. } = reading;
    Ok(ReadForm { fields, files, print: print.finalize().into(), room })
}

/// A part that is being read.
enum OpenPart<W> {
    Field(String, Vec<u8>),
    File(String, Box<Spooling<Printed<W>>>, Option<Box<dyn MayPass>>),
    Passing(String, Box<ForwardedFile<Printed<W>>>),
}

struct FormReading<'a, W, B> {
    app: &'a App,
    caller: &'a Caller,
    parts: &'a Parts,
    rules: FormRules,
    begin: B,
    in_memory: usize,
    /// For whom it is counted, once it is large.
    whose: Option<Whose>,
    room: BodyShare,
    /// Bytes of names and values.
    taken: usize,
    /// How long the whole form is said to be.
    declared: Option<u64>,
    /// How long a provider was waited for: that is not the client's time.
    sending: Duration,
    print: Sha256,
    open: Option<OpenPart<W>>,
    fields: Vec<FormField>,
    files: Vec<FormFile<W>>,
    /// Of a form that comes packed.
    unpacking: Option<Unpacking>,
}

impl<W: FileWatch, B> FormReading<'_, W, B>
where
    B: FnMut(&PartHead, &[FormField], Option<FormRest>) -> Result<TakeFile<W>, Refusal>,
{
    /// A long form may take its time, at the pace that the largest of other bodies must keep.
    async fn all(&mut self, mut reader: FormReader, mut body: Body, largest: usize) -> Result<(), Refusal> {
        let limits = &self.app.settings.limits;
        let began = Instant::now();
        let (mut came, mut total) = (0usize, 0usize);
        loop {
            let times = u32::try_from(came / limits.body_bytes.max(1)).unwrap_or(u32::MAX).saturating_add(1);
            let until = began + self.sending + limits.body_time.saturating_mul(times);
            let frame = timeout_at(until, body.frame()).await.map_err(|_| reading::late_body())?;
            let Some(frame) = frame else { break };
            let Ok(piece) = frame.map_err(|_| reading::broken_body())?.into_data() else { continue };
            came = came.saturating_add(piece.len());
            match self.unpacking.as_mut() {
                Some(unpacking) => unpacking.push(&piece),
                None => self.piece(&mut reader, piece, &mut total, largest).await?,
            }
            self.unpacked(&mut reader, &mut total, largest, false).await?;
        }
        self.unpacked(&mut reader, &mut total, largest, true).await?;
        if self.unpacking.take().is_some() {
            self.room.shrink(self.taken);
        }
        reader.finish().map_err(unreadable)
    }

    /// What comes out of a packed form.
    async fn unpacked(
        &mut self,
        reader: &mut FormReader,
        total: &mut usize,
        largest: usize,
        last: bool,
    ) -> Result<(), Refusal> {
        while let Some(unpacking) = self.unpacking.as_mut() {
            let Some(piece) = unpacking.piece(last)? else { break };
            self.piece(reader, piece, total, largest).await?;
        }
        Ok(())
    }

    async fn piece(
        &mut self,
        reader: &mut FormReader,
        piece: Bytes,
        total: &mut usize,
        largest: usize,
    ) -> Result<(), Refusal> {
        *total = total.saturating_add(piece.len());
        if *total > largest {
            let packed = self.unpacking.is_some();
            return Err(if packed { reading::too_large_unpacked(largest) } else { reading::too_large(largest) });
        }
        if *total > SMALL {
            self.large().await?;
            self.count(0).await?;
        }
        reader.push(piece);
        while let Some(event) = reader.event().map_err(|bad| self.bad(bad, reader))? {
            match event {
                FormEvent::Begin(head) => {
                    let rest = self.rest(total.saturating_sub(reader.unread()), reader.closing());
                    self.part(head, rest).await?;
                }
                FormEvent::Piece(piece) => self.of_part(piece).await?,
                FormEvent::End => self.end().await?,
            }
        }
        Ok(())
    }

    /// A large form is read for accounts that can pay.
    async fn large(&mut self) -> Result<(), Refusal> {
        if self.whose.is_none() {
            let whose = reading::whose(self.app, self.caller, &self.parts.headers).await?;
            self.whose = Some(whose);
            if self.room.bytes() <= SMALL {
                self.room.belongs_to(whose);
            }
            if let Some(OpenPart::File(_, file, _)) = &mut self.open {
                file.belongs_to(whose);
            }
        }
        Ok(())
    }

    /// What can follow here, where a file that begins may pass.
    fn rest(&self, read: usize, closing: usize) -> Option<FormRest> {
        let pays = matches!(self.whose, Some(Whose::Account(_))) && self.unpacking.is_none();
        let left = self.declared.filter(|_| pays)?.checked_sub(read as u64)?;
        let most = left.checked_sub(closing as u64).filter(|most| *most > IN_MEMORY as u64)?;
        Some(FormRest { most, closing })
    }

    async fn of_part(&mut self, piece: Bytes) -> Result<(), Refusal> {
        if let Some(OpenPart::File(_, _, pass @ Some(_))) = &mut self.open {
            match pass.as_mut().map_or(PassLook::Spool, |pass| pass.look(&piece)) {
                PassLook::More => {}
                PassLook::Spool => *pass = None,
                PassLook::Pass(way, upload) => self.passes(way, upload).await,
            }
        }
        match &mut self.open {
            Some(OpenPart::Field(_, value)) => {
                value.extend_from_slice(&piece);
                self.count(piece.len()).await
            }
            Some(OpenPart::File(name, file, _)) => file.push(&piece).await.map_err(|refusal| named(refusal, name)),
            Some(OpenPart::Passing(name, file)) => {
                let began = Instant::now();
                let pushed = file.push(piece).await.map_err(|refusal| named(refusal, name));
                self.sending += began.elapsed();
                pushed
            }
            None => Ok(()),
        }
    }

    /// From here on the open file passes, if there is memory for what is under way.
    async fn passes(&mut self, way: PassWay, upload: Box<PassingUpload>) {
        self.open = match self.open.take() {
            Some(OpenPart::File(name, file, _)) => Some(match file.pass(way, upload).await {
                Ok(passing) => OpenPart::Passing(name, Box::new(passing)),
                Err(file) => OpenPart::File(name, Box::new(file), None),
            }),
            other => other,
        };
    }

    async fn part(&mut self, head: PartHead, rest: Option<FormRest>) -> Result<(), Refusal> {
        self.count(head.name.len()).await?;
        self.open = Some(if head.file_name.is_some() {
            if self.files.len() == self.rules.files {
                let text = match self.rules.files {
                    1 => "The form has more than one file.".to_owned(),
                    files => format!("The form has more than {files} files."),
                };
                return Err(Refusal::about(Code::InvalidParameter, &head.name, text));
            }
            let TakeFile { watch, most, pass } = (self.begin)(&head, &self.fields, rest)?;
            let most = most.unwrap_or(u64::MAX).min(self.rules.file_bytes);
            let terms = SpoolTerms { whose: self.whose, most, in_memory: self.in_memory };
            let watch = Printed { hash: reading::repeats(&self.parts.headers).then(Sha256::new), watch };
            OpenPart::File(head.name, Box::new(self.app.spool.begin(terms, watch).await?), pass)
        } else {
            OpenPart::Field(head.name, Vec::new())
        });
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Refusal> {
        match self.open.take() {
            Some(OpenPart::Field(name, value)) => {
                let Ok(text) = String::from_utf8(value) else {
                    return Err(Refusal::about(Code::InvalidParameter, &name, format!("`{name}` is not text.")));
                };
                self.prints(&name, 0, text.as_bytes());
                self.fields.push(FormField { name, text });
            }
            Some(OpenPart::File(name, file, _)) => {
                let spooled = file.finish().await.map_err(|refusal| named(refusal, &name))?;
                self.file(name, UploadedFile::Spooled(spooled.file), spooled.watch);
            }
            Some(OpenPart::Passing(name, file)) => {
                let (passed, watch) = file.finish();
                self.file(name, UploadedFile::Passed(passed), watch);
            }
            None => {}
        }
        Ok(())
    }

    fn file(&mut self, name: String, file: UploadedFile, Printed { hash, watch }: Printed<W>) {
        let print = hash.map(|hash| hash.finalize().to_vec()).unwrap_or_default();
        self.prints(&name, 1, &print);
        self.files.push(FormFile { name, file, watch });
    }

    /// Each value after its length, so that no two forms come to the same bytes.
    fn prints(&mut self, name: &str, kind: u8, value: &[u8]) {
        for bytes in [name.as_bytes(), &[kind], value] {
            self.print.update((bytes.len() as u64).to_be_bytes());
            self.print.update(bytes);
        }
    }

    /// Memory for more of the fields.
    async fn count(&mut self, more: usize) -> Result<(), Refusal> {
        self.taken = self.taken.saturating_add(more);
        let largest = self.app.settings.limits.body_bytes;
        if self.taken > largest {
            return Err(reading::too_large(largest));
        }
        // What is looked back at while a form is unpacked is memory too.
        let unpacking = self.unpacking.as_ref().map_or(0, Unpacking::held);
        self.room.grow(self.taken.saturating_add(unpacking)).await
    }

    fn bad(&self, bad: Bad, reader: &FormReader) -> Refusal {
        let Some(part) = reader.open().filter(|_| bad == Bad::TooLong) else { return unreadable(bad) };
        let name = &part.name;
        match part.file_name {
            Some(_) => Problem::large_file(self.rules.file_bytes).about(name).into(),
            None => {
                let text = format!("`{name}` is longer than {} bytes.", self.rules.field_bytes);
                Refusal::about(Code::InvalidParameter, name, text)
            }
        }
    }
}

/// The same, about this field.
pub fn named(refusal: Refusal, name: &str) -> Refusal {
    Refusal { param: refusal.param.or_else(|| Some(name.to_owned())), ..refusal }
}
