"""Stored attachments: image headers, sizes and ids of request versions, the file index, what is wrong with a store."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from dsh_audit.attachments.checks import check_object, check_version
from dsh_audit.attachments.file_index import parse_file_index
from dsh_audit.attachments.handles import image_handle, parse_handle
from dsh_audit.attachments.media import Media, is_complete, parse_media
from dsh_audit.attachments.references import Reference, parse_reference
from dsh_audit.attachments.shown import ShownFold
from dsh_audit.attachments.store import AttachmentStore
from dsh_audit.attachments.versions import Policy, default_policy, fit_pixels, fit_tokens, resized
from tests.image_home import ident, image, index, jpeg, place_of, png, store

PNG = png(60, 40)
GIF = b"GIF89a" + struct.pack("<HH", 7, 9) + b"\0\0\0;"
VP8 = b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 320, 0x4000 | 200)
VP8L = b"RIFF" + struct.pack("<I", 17) + b"WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 99 | 49 << 14)
VP8X = b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + bytes(8) + b"\xff\x0f\0\x7f\x02\0"
LONG = jpeg(1400, 1167).replace(b"\xff\xc0", b"\xff\xe1\xff\xff" + bytes(65533) + b"\xff\xff\xc0", 1)

HEADERS = [
    ("png", PNG, Media("image/png", 60, 40)),
    ("jpeg", jpeg(1400, 1167), Media("image/jpeg", 1400, 1167)),
    ("jpeg with a long segment and fill bytes", LONG, Media("image/jpeg", 1400, 1167)),
    ("gif", GIF, Media("image/gif", 7, 9)),
    ("lossy webp", VP8, Media("image/webp", 320, 200)),
    ("lossless webp", VP8L, Media("image/webp", 100, 50)),
    ("extended webp", VP8X, Media("image/webp", 4096, 640)),
    ("huge on paper", PNG[:16] + b"\xff" * 8 + PNG[24:], Media("image/png", 2**32 - 1, 2**32 - 1)),
    ("no width", PNG[:16] + bytes(4) + PNG[20:], None),
    ("cut png", PNG[:20], None),
    ("cut jpeg", jpeg(9, 9)[:7], None),
    ("segments without end", b"\xff\xd8" + b"\xff\xe0\0\2" * 100_000, None),
    ("fill bytes without end", b"\xff\xd8" + b"\xff" * 100_000, None),
    ("a segment that leads nowhere", b"\xff\xd8\xff\xe0\0\0" + bytes(20), None),
    ("a scan before its frame", b"\xff\xd8\xff\xda\0\4" + bytes(20), None),
    ("text", b"hello, world" * 9, None),
    ("nothing", b"", None),
]


def parse(data: bytes) -> Media | None:
    return parse_media(lambda at, count: data[at : at + count], len(data))


@pytest.mark.parametrize(("what", "data", "media"), HEADERS, ids=[case[0] for case in HEADERS])
def test_headers(what: str, data: bytes, media: Media | None) -> None:
    assert parse(data) == media


def test_hostile_headers_cost_little_and_never_fail() -> None:
    draw = random.Random(13)
    for _ in range(3000):
        data = bytearray(draw.choice([PNG, jpeg(9, 9, b"x" * 90), GIF, VP8, VP8L, VP8X, LONG[:300]]))
        for _ in range(draw.randrange(1, 9)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        seen = 0

        def read(at: int, count: int, data: bytes = bytes(data[: draw.randrange(1, len(data) + 1)])) -> bytes:
            nonlocal seen
            seen += count
            return data[at : at + count]

        media = parse_media(read, len(data))
        assert seen < 8000
        if media is not None:
            is_complete(media.media_type, read, len(data))


@pytest.mark.parametrize("data", [PNG, jpeg(9, 9), GIF, VP8L + b""], ids=["png", "jpeg", "gif", "webp"])
def test_a_cut_file_is_seen(data: bytes) -> None:
    media = parse(data)
    assert media is not None
    assert is_complete(media.media_type, lambda at, count: data[at : at + count], len(data))
    cut = data[:-1]
    assert not is_complete(media.media_type, lambda at, count: cut[at : at + count], len(cut))


@pytest.mark.parametrize(
    ("given", "pixels", "tokens"),
    [
        ((60, 40), (60, 40), (60, 40)),
        ((1800, 1500), (876, 730), (1400, 1167)),
        ((1, 1), (1, 1), (1, 1)),
        ((10_000, 10), (10_000, 10), (4096, 4)),
        ((20_000, 40), (17_777, 36), (4096, 8)),
        ((3, 90_000), (3, 90_000), (1, 4096)),
    ],
)
def test_sizes(given: tuple[int, int], pixels: tuple[int, int], tokens: tuple[int, int]) -> None:
    assert fit_pixels(*given, 640_000) == pixels
    assert fit_tokens(*given) == tokens


def test_versions_are_named_by_their_recipe() -> None:
    large = Reference(ident(PNG), "image/png", 1800, 1500, 1_213_569)
    ids = {default_policy(recipe).variant_id(large) for recipe in ("request-image-v4", "request-image-v5")}
    ids |= {Policy("request-image-v6", None, 2 << 20).variant_id(large)}
    assert len(ids) == 3
    assert not default_policy("request-image-v5").keeps(large)
    assert resized(default_policy("request-image-v5"), large) == (876, 730)
    assert resized(default_policy("request-image-v6"), large) == (1400, 1167)
    small = Reference(ident(PNG), "image/png", 60, 40, 7033)
    assert default_policy("request-image-v5").keeps(small)
    assert not Policy("request-image-v5", 640_000, 7000).keeps(small)


@pytest.mark.parametrize(
    "change",
    [{"attachmentId": "sha256:12"}, {"width": 0}, {"bytes": -1}, {"height": 2**40}, {"mediaType": 5}, {"width": "9"}],
)
def test_a_reference_that_no_release_writes_is_none(change: dict[str, object]) -> None:
    attachment = image(PNG, 60, 40)["attachment"]
    assert parse_reference(attachment) is not None
    assert parse_reference({**attachment, **change}) is None


def test_objects_are_what_their_digest_says(tmp_path: Path) -> None:
    one, two, three, text = PNG, png(20, 20), png(30, 30), b"no image"
    folder = store(tmp_path, one, two, three, text)
    place_of(folder, ident(one)).write_bytes(two)
    place_of(folder, ident(two)).write_bytes(one)
    place_of(folder, ident(three)).write_bytes(three[:-30] + b"?" + three[-29:])
    attachments = AttachmentStore([tmp_path])

    def problem(data: bytes, width: int, height: int, media_type: str = "image/png") -> str | None:
        found = check_object(attachments, Reference(ident(data), media_type, width, height, len(data)))
        return None if found is None else found.rule.code

    assert problem(one, 60, 40) == problem(two, 20, 20) == "attachments/swapped"
    assert problem(three, 30, 30) == "attachments/altered"
    assert problem(b"gone", 3, 3) == "attachments/missing"
    assert problem(text, 3, 3) == "attachments/mistyped"
    place_of(folder, ident(one)).write_bytes(one)
    attachments = AttachmentStore([tmp_path])
    assert problem(one, 60, 40) is None
    assert problem(one, 60, 41) == problem(one, 60, 40, "image/jpeg") == "attachments/mistyped"


def test_a_cut_version_is_seen_by_its_end_or_by_the_index(tmp_path: Path) -> None:
    reference = Reference(ident(PNG), "image/png", 60, 40, len(PNG))
    cache = tmp_path / "attachments/v1/request-images"
    place = place_of(cache, "sha256:" + "a" * 64)
    place.parent.mkdir(parents=True)

    def problem(data: bytes) -> str | None:
        place.write_bytes(data)
        attachments = AttachmentStore([tmp_path])
        stored = attachments.variant("sha256:" + "a" * 64)
        assert stored is not None
        found = check_version(attachments, reference, "sha256:" + "a" * 64, stored)
        return None if found is None else found.what.partition(PNG.hex())[0].split(" ", 4)[-1]

    assert problem(jpeg(9, 9)) is None
    assert "cut" in str(problem(jpeg(9, 9)[:-1]))
    assert "no image" in str(problem(b"?"))
    index(tmp_path, {"file-1": PNG})
    record = AttachmentStore([tmp_path]).file_records[0]
    place = place_of(cache, record.variant_id)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(jpeg(9, 9))
    attachments = AttachmentStore([tmp_path])
    stored = attachments.variant(record.variant_id)
    assert stored is not None
    found = check_version(attachments, reference, record.variant_id, stored)
    assert found is not None and f"{len(PNG)} were uploaded" in found.what


@pytest.mark.parametrize("data", [b"", b"[]", b'{"formatVersion":2,"records":[]}', b'{"formatVersion":3}', b"{"])
def test_no_file_index(data: bytes) -> None:
    assert parse_file_index(data) is None


def test_malformed_records_are_left_out(tmp_path: Path) -> None:
    index(tmp_path, {"file-1": PNG, "file-2": png(20, 20)})
    data = (tmp_path / "llm-deepseek/files-v3.json").read_bytes()
    records = parse_file_index(data.replace(b'"file-1"', b"1"))
    assert records is not None and [record.file_id for record in records] == ["file-2"]


TEXTS = {"image-handle-path": "p" * 63, "image-handle-editing": "e" * 90, "image-handle-without-path": "w" * 86}


@pytest.mark.parametrize("name", [None, 'a "b" \\ (sha256:1).png'])
@pytest.mark.parametrize("home", [None, "/srv/toy/home", "C:\\toy"])
def test_a_handle_is_read_as_it_was_written(name: str | None, home: str | None) -> None:
    reference = Reference(ident(PNG), "image/png", 60, 40, 7033, name)
    text = image_handle("named", reference, (30, 20), home, TEXTS.__getitem__)
    assert text is not None
    found = list(parse_handle(f"before {text} after {text}"))
    assert [(one.style, one.attachment_id, one.home) for one in found] == [("named", reference.id, home)] * 2


def test_ids_of_uploaded_files_are_told_by_period() -> None:
    one, two = (Reference(ident(data), "image/png", 9, 9, 9) for data in (b"1", b"2"))
    fold = ShownFold()
    for ids in (("f1",), ("f1", "f2"), ("f3", "f2"), ("f1",)):
        parts = []
        for reference, file_id in zip((one, two), ids, strict=False):
            parts.append({"type": "text", "text": image_handle("short", reference, (9, 9), None, str)})
            parts.append({"type": "file", "file_id": file_id})
        fold.take({"messages": [{"role": "user", "content": parts}, {"role": "user", "content": "x"}]})
    periods = [dict(period) for period in fold.result().periods]
    assert periods == [{one.id: "f1", two.id: "f2"}, {one.id: "f3", two.id: "f2"}]
