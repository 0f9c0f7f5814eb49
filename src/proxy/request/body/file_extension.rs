//! The media type of a file by the extension of its name: the common types of the IANA registry.

/// The extensions of what APIs are most often given.
const TYPES: [(&str, &str); 34] = [
    ("7z", "application/x-7z-compressed"),
    ("bmp", "image/bmp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// Returns the media type of a file of that name; `None` if its extension is not a common one.
pub(crate) fn media_type_of_name(filename: &str) -> Option<&'static str> {
    let (_, extension) = filename.rsplit_once('.')?;
    let found = TYPES
        .iter()
        .find(|(known, _)| extension.eq_ignore_ascii_case(known));
    found.map(|(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::request::body::media_type::is_media_type;

    #[test]
    fn a_name_tells_the_media_type_by_its_extension() {
        for (name, expected) in [
            ("a.txt", Some("text/plain")),
            ("photo.JPG", Some("image/jpeg")),
            ("archive.tar.gz", Some("application/gzip")),
            ("a.unknown", None),
            ("txt", None),
            ("", None),
        ] {
            assert_eq!(media_type_of_name(name), expected, "{name}");
        }
        assert!(
            TYPES
                .iter()
                .all(|(_, media_type)| is_media_type(media_type))
        );
    }
}
