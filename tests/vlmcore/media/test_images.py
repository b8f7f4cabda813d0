"""
Tests of `vlmcore.media.images`: the rows of trouble that people have with images, one by one.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import types
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile, ImageOps

from hostile.make_images import png
from vlmcore.errors import ContractError, MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media.encoding import data_url, encode_jpeg, encode_png
from vlmcore.media.images import image_info, load_image, load_images
from vlmcore.media.resizing import fit_longest_edge

WHITE = [255, 255, 255]
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 9, 3), dtype=np.uint8)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Encode a PIL image."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def oriented(orientation: int) -> bytes:
    """Build EXIF with an orientation."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


# ---- orientation -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_a_picture_that_lies_on_its_side_is_turned_before_anything_else(kind: str) -> None:
    """
    A stored 600 x 300 with orientation 6, longest edge 448, is 224 wide and 448 high.
    """
    file = encoded(Image.new("RGB", (600, 300)), kind, exif=oriented(6))

    assert (448, 224, 3) == fit_longest_edge(load_image(file), 448).shape
    assert (448, 224, 3) == fit_longest_edge(load_image(Image.open(io.BytesIO(file))), 448).shape
    info = image_info(file)
    assert (600, 300) == (info.height_px, info.width_px)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_applied(orientation: int, kind: str) -> None:
    """
    The same as Pillow's own ``exif_transpose``, for all eight.
    """
    file = encoded(Image.fromarray(PIXELS), kind, exif=oriented(orientation))
    expected = Image.fromarray(PIXELS)
    expected.getexif()[0x0112] = orientation
    expected = ImageOps.exif_transpose(expected)
    assert np.array_equal(np.asarray(expected), load_image(file))


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\0\x01\0\0\0\x06\0",
        b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0\0\0\0\0",
        b"garbage",
        oriented(6)[:20],
        oriented(0),
    ],
    ids=["empty", "nowhere", "cut", "99", "garbage", "cut-tag", "0"],
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_broken_exif_does_not_fail_the_load(kind: str, exif: bytes) -> None:
    """
    Metadata is a courtesy: where it cannot be read, the picture stays as it is stored.
    """
    file = encoded(Image.new("RGB", (600, 300)), kind, exif=exif)
    assert (300, 600, 3) == load_image(file).shape


# ---- modes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "La", "RGBa"])
def test_a_fully_transparent_pixel_is_white(mode: str) -> None:
    """
    Not black: a model would see noise around every cut-out.
    """
    assert WHITE == load_image(Image.new(mode, (2, 2)))[0, 0].tolist()


@pytest.mark.parametrize(
    "image",
    [
        Image.new("RGBA", (2, 2), (9, 9, 9, 0)),
        np.zeros((8, 9, 4), np.uint8),
        np.zeros((8, 9, 2), np.float32),
    ],
    ids=["PIL", "array", "grey-and-alpha"],
)
def test_the_background_is_the_callers_choice(image: Any) -> None:
    """
    For files, PIL images and arrays alike.
    """
    assert [1, 2, 3] == load_image(image, background=(1, 2, 3))[0, 0].tolist()


def test_half_transparent_is_half_of_both() -> None:
    """
    Composited, not cut.
    """
    picture = Image.new("RGBA", (1, 1), (0, 0, 255, 128))
    assert [127, 127, 255] == load_image(picture)[0, 0].tolist()


@pytest.mark.parametrize("wrong", [(0, 0), (0, 0, 256), "white", (0.5, 0.5, 0.5), None])
def test_a_background_that_is_no_colour_is_refused(wrong: Any) -> None:
    """
    Before anything is read.
    """
    with pytest.raises(ContractError, match=r"^background: got"):
        load_image("never-opened.png", background=wrong)


def test_a_palette_with_transparency_is_composited() -> None:
    """
    PNG keeps one alpha a palette entry, GIF one transparent index.
    """
    picture = Image.new("P", (2, 1))
    picture.putpalette([10, 20, 30, 40, 50, 60])
    picture.putpixel((1, 0), 1)

    for kind in ("PNG", "GIF"):
        loaded = load_image(encoded(picture, kind, transparency=0))
        assert [WHITE, [40, 50, 60]] == loaded[0].tolist()
    assert [[10, 20, 30], [40, 50, 60]] == load_image(encoded(picture))[0].tolist()


@pytest.mark.parametrize(
    ("mode", "colour", "transparent"),
    [("L", 7, 7), ("RGB", (1, 2, 3), (1, 2, 3)), ("1", 1, 1), ("I;16", 999, 999)],
)
def test_a_transparent_colour_of_a_png_is_composited(
    mode: str, colour: Any, transparent: Any
) -> None:
    """
    The tRNS chunk, which PNG has for grey, RGB and 16-bit grey as well.
    """
    file = encoded(Image.new(mode, (2, 2), colour), transparency=transparent)
    assert [1, 2, 3] == load_image(file, background=(1, 2, 3))[0, 0].tolist()


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, WHITE),
        ("L", 77, [77, 77, 77]),
        ("CMYK", (0, 255, 255, 0), [255, 0, 0]),
        ("RGBX", (1, 2, 3, 0), [1, 2, 3]),
        ("YCbCr", (255, 128, 128), WHITE),
        ("HSV", (0, 255, 255), [255, 0, 0]),
        ("LAB", (0, 128, 128), [0, 0, 0]),
        ("I", 65535, WHITE),
        ("I", -5, [0, 0, 0]),
        ("I", 1 << 20, WHITE),
        ("I;16", 257 * 9, [9, 9, 9]),
        ("I;16B", 257 * 9, [9, 9, 9]),
        ("F", 0.2, [51, 51, 51]),
        ("F", 1.7, WHITE),
    ],
)
def test_every_mode_becomes_rgb(mode: str, colour: Any, expected: list[int]) -> None:
    """
    Whatever the channels are; integers are read as 16 bits, floats as 0 to 1, both clipped.
    """
    loaded = load_image(Image.new(mode, (3, 2), colour))
    assert ((2, 3, 3), "uint8") == (loaded.shape, loaded.dtype.name)
    assert np.abs(loaded[1, 2].astype(int) - expected).max() <= (mode == "LAB")


def test_cmyk_jpeg_is_not_inverted() -> None:
    """
    Adobe writes CMYK upside down; the marker that says so survives the cleaning.
    """
    file = encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG")
    red, green, blue = load_image(file)[4, 4].tolist()
    assert red > 240
    assert green < 15
    assert blue < 15


# ---- 16 bits -----------------------------------------------------------------------------------

RAMP = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_a_full_ramp_of_16_bits_has_mean_127(kind: str) -> None:
    """
    Scaled, not cut to the lower byte and not saturated to white.
    """
    assert 127.5 == load_image(encoded(Image.fromarray(RAMP), kind)).mean()


def test_16_bit_rgb_is_scaled_as_well() -> None:
    """
    A PNG of three channels of 16 bits.
    """
    rows = b"".join(b"\0" + struct.pack(">HHH", 0, 32896, 65535) * 8 for _ in range(8))
    file = png((b"IDAT", zlib.compress(rows)), depth=16, colours=2)
    assert [0, 128, 255] == load_image(file)[3, 3].tolist()


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_16_bit_tiff_is_read_in_its_own_byte_order(order: str) -> None:
    """
    Two bytes the wrong way round are noise.
    """
    file = tiff_of_grey(order, bits=16, photometric=1, row=[13107] * 8)
    assert [51] * 3 == load_image(file)[0, 0].tolist()


def test_a_16_bit_tiff_whose_0_is_white_is_not_a_negative() -> None:
    """
    Pillow inverts the ones of 8 bits and leaves these.
    """
    file = tiff_of_grey("<", bits=16, photometric=0, row=[13107] * 8)
    assert [204] * 3 == load_image(file)[0, 0].tolist()


def tiff_of_grey(order: str, *, bits: int, photometric: int, row: list[int]) -> bytes:
    """Build an uncompressed TIFF of one row."""
    packed = "".join(f"{value:0{bits}b}" for value in row)
    data = int(packed, 2).to_bytes(len(packed) // 8, "big")
    if bits == 16:
        data = struct.pack(f"{order}{len(row)}H", *row)
    tags = [
        (0x100, 4, len(row)),
        (0x101, 4, 1),
        (0x102, 3, bits),
        (0x103, 3, 1),
        (0x106, 3, photometric),
        (0x111, 4, 8),
        (0x115, 3, 1),
        (0x116, 4, 1),
        (0x117, 4, len(data)),
    ]
    start = 8 + len(data)
    out = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, start) + data
    out += struct.pack(f"{order}H", len(tags))
    for tag, kind, value in tags:
        fill = struct.pack(f"{order}{'H2x' if kind == 3 else 'I'}", value)
        out += struct.pack(f"{order}HHI", tag, kind, 1) + fill
    return out + bytes(4)


def test_white_of_12_bits_is_white() -> None:
    """
    4095 is the most that 12 bits hold; read as 16 bits the picture would be nearly black.
    """
    file = tiff_of_grey("<", bits=12, photometric=1, row=[4095, 0] * 4)
    assert [WHITE, [0, 0, 0]] == load_image(file)[0, :2].tolist()


# ---- broken and hostile ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_a_truncated_file_is_one_clear_error_that_names_it(kind: str, tmp_path: Path) -> None:
    """
    Never half a picture, never an error of the decoder's own kind.
    """
    whole = encoded(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)), kind)
    path = tmp_path / "holiday"
    path.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(MediaError) as caught:
        load_image(path)
    assert str(path) == caught.value.source
    assert kind in caught.value.problem


def test_a_file_that_is_no_image_is_one_clear_error_that_names_it(tmp_path: Path) -> None:
    """
    What came and what was expected.
    """
    path = tmp_path / "notes.png"
    path.write_text("buy milk")
    with pytest.raises(MediaError) as caught:
        load_image(path)
    assert str(caught.value) == (
        f"{path}: is text, expected PNG, JPEG, WebP, GIF, BMP, TIFF, PPM or AVIF"
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_the_pixel_count_is_read_from_the_header(kind: str) -> None:
    """
    Refused before decoding, with the numbers as data; one pixel fewer is let in.
    """
    file = encoded(Image.new("RGB", (20, 10)), kind)
    with pytest.raises(MediaLimitError) as caught:
        load_image(file, limits=ImageLimits(max_pixels=199))
    assert ("max_pixels", 200, 199) == (
        caught.value.limit,
        caught.value.actual,
        caught.value.allowed,
    )
    assert (10, 20, 3) == load_image(file, limits=ImageLimits(max_pixels=200)).shape


@pytest.mark.parametrize(
    "source",
    [np.zeros((10, 20), np.uint8), Image.new("L", (20, 10))],
    ids=["array", "PIL"],
)
def test_the_bound_holds_for_pixels_in_memory_too(source: Any) -> None:
    """
    What comes after the door is paid for by the pixel, wherever the pixels came from.
    """
    with pytest.raises(MediaLimitError, match="max_pixels: got 200, limit is 199"):
        load_image(source, limits=ImageLimits(max_pixels=199))


def test_no_setting_of_pillow_is_written() -> None:
    """
    They are the process's own, and other threads read them.
    """
    before = (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, dict(Image.OPEN))
    load_image(encoded(Image.new("RGB", (20, 10))))
    assert before == (
        Image.MAX_IMAGE_PIXELS,
        ImageFile.LOAD_TRUNCATED_IMAGES,
        {name: Image.OPEN[name] for name in before[2]},
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "PPM"])
def test_a_picture_between_the_bounds_of_pillow_and_ours_is_read_without_a_warning(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Pillow warns about what it calls large; here the caller has said what is.
    """
    file = encoded(Image.new("RGB", (20, 10)), kind)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 150)
    assert (10, 20, 3) == load_image(file).shape


def test_only_formats_of_the_list_are_opened() -> None:
    """
    A plugin that the process has registered cannot be reached by bytes from outside.
    """
    Image.init()
    for kind in ("ICO", "TGA", "PCX", "SGI", "EPS", "JPEG2000", "PDF", "DDS", "ICNS"):
        file = encoded(Image.new("RGB", (32, 32)), kind)
        with pytest.raises(MediaError, match=", expected PNG, JPEG, "):
            load_image(file)


@pytest.mark.parametrize("size", [(1, 1), (1, 4000), (4000, 1), (1, 1 << 20)])
def test_one_pixel_high_or_wide_is_an_image(size: tuple[int, int]) -> None:
    """
    Extreme aspect ratios do not crash.
    """
    assert (size[1], size[0], 3) == load_image(encoded(Image.new("L", size))).shape


# ---- sources -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["picture", "picture.jpg", "picture.txt", "日本語 x.gif"])
def test_the_type_comes_from_the_content(name: str, tmp_path: Path) -> None:
    """
    A wrong extension, or none, does not matter.
    """
    path = tmp_path / name
    path.write_bytes(encoded(Image.fromarray(PIXELS)))
    assert np.array_equal(PIXELS, load_image(path))
    assert "image/png" == image_info(path).image_format.value


def test_every_source_of_a_picture_gives_the_same_pixels(tmp_path: Path) -> None:
    """
    Path, bytes, open file, data URL, PIL image, array.
    """
    file = encoded(Image.fromarray(PIXELS))
    path = tmp_path / "picture"
    path.write_bytes(file)
    sources: list[Any] = [
        path,
        str(path),
        file,
        bytearray(file),
        memoryview(file),
        io.BytesIO(file),
        data_url(file),
        Image.open(io.BytesIO(file)),
        Image.fromarray(PIXELS),
        PIXELS,
        PIXELS.transpose(2, 0, 1),
        PIXELS / 255,
        PIXELS[np.newaxis],
    ]
    assert len(sources) == len(load_images(sources))
    sources[5].seek(0)
    for source in sources:
        assert np.array_equal(PIXELS, load_image(source))


@pytest.mark.parametrize("source", [None, 5, object(), ["a.png"], {"a": 1}])
def test_what_holds_no_image_is_refused_by_its_type(source: Any) -> None:
    """
    A mistake of the caller, not a broken file.
    """
    with pytest.raises(ContractError, match=r"^source: got .*, expected a path, bytes, "):
        load_image(source)


def test_the_array_is_new_and_owned() -> None:
    """
    Writing to it changes nothing of the caller's, and nothing of the caller's changes it.
    """
    mine = PIXELS.copy()
    for source in (mine, mine.transpose(2, 0, 1), Image.fromarray(mine)):
        loaded = load_image(source)
        assert loaded.flags.c_contiguous
        assert loaded.flags.owndata
        assert loaded.flags.writeable
        assert not np.shares_memory(mine, loaded)
        loaded[:] = 0
    assert np.array_equal(PIXELS, mine)


def test_a_pil_image_is_left_as_it_was() -> None:
    """
    Neither turned nor converted in place.
    """
    picture = Image.open(io.BytesIO(encoded(Image.new("P", (6, 3)), exif=oriented(6))))
    load_image(picture)
    assert ("P", (6, 3)) == (picture.mode, picture.size)


def test_a_closed_or_broken_pil_image_is_our_error() -> None:
    """
    Pillow reads lazily: what is wrong with the file comes up here.
    """
    half = encoded(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)))[:4000]
    with pytest.raises(MediaError, match=r"^PIL image: cannot be decoded: "):
        load_image(Image.open(io.BytesIO(half)))
    closed = Image.open(io.BytesIO(encoded(Image.new("L", (2, 2)))))
    closed.close()
    with pytest.raises(MediaError, match=r"^PIL image: cannot be decoded: "):
        load_image(closed)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_picture_is_loaded_and_the_rest_is_told(kind: str) -> None:
    """
    Silently is not how: `image_info` says how many there are.
    """
    pictures = [Image.new("RGB", (4, 3), (red, 0, 0)) for red in (255, 0, 100)]
    file = encoded(pictures[0], kind, save_all=True, append_images=[*pictures[1:]])
    red, _, _ = load_image(file)[1, 1].tolist()
    assert red > 250
    assert 3 == image_info(file).frames


def test_a_batch_is_a_list_of_images() -> None:
    """
    What ComfyUI calls an image is a batch: one of it is taken, several are asked for by name.
    """
    batch = np.stack([np.full((5, 6, 3), value, np.float32) for value in (0, 0.2, 1)])
    assert [0, 51, 255] == [image[0, 0, 0] for image in load_images(batch)]
    assert (5, 6, 3) == load_image(batch[:1]).shape
    with pytest.raises(MediaError, match=r"is a batch of 3, expected one .* use load_images"):
        load_image(batch)


def test_an_object_with_an_array_in_it_is_taken_as_that() -> None:
    """
    JAX, TensorFlow and others hand out their values by this protocol.
    """

    class Holder:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return PIXELS

    assert np.array_equal(PIXELS, load_image(Holder()))


def test_an_object_that_hands_out_no_array_is_our_error() -> None:
    """
    Its code is not ours: whatever it raises, there are no pixels.
    """

    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError("on another device")

    with pytest.raises(MediaError, match=r"^Broken: gives no array: on another device"):
        load_image(Broken())


def test_metadata_goes_no_further_than_the_door() -> None:
    """
    An array has no place for it, and what is encoded from an array has none.
    """
    exif = Image.Exif()
    exif[0x010E] = "SECRET PLACE"
    exif.get_ifd(0x8825)[2] = (48.0, 51.0, 30.0)
    file = encoded(Image.fromarray(PIXELS), "JPEG", exif=exif.tobytes(), comment=b"SECRET WORDS")
    assert b"SECRET" in file
    for again in (encode_jpeg(load_image(file)), encode_png(load_image(file))):
        assert b"SECRET" not in again
        assert b"Exif" not in again
        assert {} == dict(Image.open(io.BytesIO(again)).getexif())


# ---- what it needs -----------------------------------------------------------------------------


def test_arrays_need_no_pillow_and_files_say_what_is_missing(tmp_path: Path) -> None:
    """
    A robot that sends camera frames does not install an image library.
    """
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'PIL'\", name='PIL')"
    )
    (tmp_path / "picture").write_bytes(encoded(Image.fromarray(PIXELS)))
    program = (
        "import numpy as np, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from vlmcore.errors import MissingDependencyError\n"
        "from vlmcore.media import image_info, load_image\n"
        "assert load_image(np.zeros((5, 9, 3), np.float32)).shape == (5, 9, 3)\n"
        "assert image_info(sys.argv[1] + '/picture').width_px == 9\n"
        "assert 'PIL' not in sys.modules and 'torch' not in sys.modules\n"
        "try: load_image(sys.argv[1] + '/picture')\n"
        "except MissingDependencyError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "" == done.stderr
    assert "'PIL' is needed here" in done.stdout
    assert 'pip install "vlmcore[images]"' in done.stdout


@pytest.mark.parametrize("name", ["torch", "PIL.Image"])
def test_an_image_is_loaded_while_another_thread_imports_a_framework(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A module that is being imported is known by its name, and has nothing in it yet.
    """
    pixels = np.full((5, 6, 3), 7, np.uint8)
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    assert np.array_equal(pixels, load_image(pixels))
