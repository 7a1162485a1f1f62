#!/usr/bin/env python3
"""Makes the pictures of the documents from a stored run, docs/pictures/run.json.

    python3 docs/pictures.py --scruple target/release/scruple          makes docs/pictures/*.svg and *.png
    python3 docs/pictures.py --scruple target/release/scruple --new    measures the run anew before

The charts are `scruple report --svg NAME`; the page is what headless Chromium shows of `scruple report --export page.html`.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
RUN = PICTURES / "run.json"
COMMANDS = {"gzip -6": "gzip -6 -c text.txt", "gzip -5": "gzip -5 -c text.txt", "zstd": "zstd -q -c text.txt"}
CHARTS = ["cpu-time-readings", "cpu-time-differences", "cpu-time-distribution", "cpu-time-course"]

LOOK = """
import { Browser } from '%s';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const [page, folder] = process.argv.slice(2);
const browser = new Browser();
for (const dark of [false, true]) {
  const tab = await browser.tab(1120, dark);
  await tab.open(pathToFileURL(page).href);
  const clip = { x: 0, y: 0, width: 1120, height: 760, scale: 1 };
  const { data } = await tab.send('Page.captureScreenshot', { format: 'png', clip, captureBeyondViewport: true });
  writeFileSync(`${folder}/page-${dark ? 'dark' : 'light'}.png`, Buffer.from(data, 'base64'));
  await tab.close();
}
await browser.close();
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scruple", required=True, type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--new", action="store_true", help="measure the run anew")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scruple-pictures-") as text:
        place = pathlib.Path(text) / "project"
        place.mkdir()
        # The run remembers how it was called.
        programs = pathlib.Path(text) / "bin"
        programs.mkdir()
        (programs / "scruple").symlink_to(args.scruple)
        env = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", HOME=text, SCRUPLE_STORE=str(place / "store.db"), XDG_CACHE_HOME=f"{text}/cache")
        scruple = lambda *words: subprocess.run(["scruple", *words], cwd=place, env=env, check=True, capture_output=True, text=True)
        if args.new:
            headers = sorted(pathlib.Path("/usr/include").rglob("*.h"))
            (place / "text.txt").write_bytes(b"".join(path.read_bytes() for path in headers)[:1_000_000])
            names = [word for name in COMMANDS for word in ("-n", name)]
            scruple("run", "-r", "40", *names, *COMMANDS.values())
            RUN.write_text(scruple("show", "last", "--json").stdout.replace(str(place), "/home/you/project").replace(text, "/home/you"))
            (place / "store.db").unlink()
        scruple("store", "import", str(RUN))
        for name in CHARTS:
            scruple("report", "--svg", name, "--export", str(PICTURES / f"{name}.svg"))
        page = place / "page.html"
        scruple("report", "--export", str(page))
        look = place / "look.mjs"
        look.write_text(LOOK % (ROOT / "tests/pages/browser.mjs"))
        subprocess.run(["node", str(look), str(page), str(PICTURES)], check=True)
        # Fewer colours, where there is a tool for it: a picture in a README is loaded by everybody.
        if squeeze := shutil.which("pngquant"):
            for picture in PICTURES.glob("*.png"):
                subprocess.run([squeeze, "--force", "--ext", ".png", "--skip-if-larger", str(picture)], check=False)


if __name__ == "__main__":
    main()
