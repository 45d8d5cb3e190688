#!/usr/bin/python3
"""The page of `holdfast web` in a real Chromium: locks that come and go, a thousand of them, hostile names, keys.

    page_test.py HOLDFAST [--pictures DIRECTORY] [TEST...]

Ends with 77, and says so, where Chromium is not installed. --pictures also makes the pictures of the documentation,
which takes a minute.
"""

import argparse
import contextlib
import os
import sys
import time

import chromium
from servers import Box, wait_until

ROWS = "[...document.querySelectorAll('#locks tbody tr')]"
NAMES = ROWS + ".map(tr => tr.querySelector('a.name').textContent)"
HOSTILE = ["<img src=x onerror=\"window.hacked=1\">", "\"'><script>window.hacked=1</script>", "javascript:alert(1)",
           "{{constructor.constructor('window.hacked=1')()}}", "\u202egnihton si siht", "a\nb\tc\x00d", "  two  blanks",
           "x" * 900, "&lt;b&gt;", "../../etc", "#/health", "%3Cscript%3E", "дом", "錠🔒"]


@contextlib.contextmanager
def opened(browser, box, *options, **how):
    """The page of a `holdfast web` of its own; it must have nothing to complain about at the end."""
    address = box.start_web("--interval", "100ms", *options)
    page = browser.open(how.pop("url", None) or address, **how)
    try:
        page.wait("state.looked && state.live")
        yield page
        assert page.complaints() == [], page.complaints()
        host = address.split("#")[0]
        elsewhere = [url for url in page.requests() if not url.startswith(host) and not url.startswith("data:")]
        assert elsewhere == [], elsewhere
    finally:
        page.close()


def open_lock(page, name):
    page.run(f"location.hash = '#/lock/' + [...state.rows.values()].find(row => row.name === {name!r}).key")
    page.wait("!!document.querySelector('#page-lock .timeline')")


def locks_come_and_go(browser, box):
    with opened(browser, box) as page:
        page.wait("document.getElementById('empty').textContent.startsWith('Nobody holds a lock')")
        first = box.run("job:1", "sleep", "600")
        page.wait(f"{NAMES}.join() === 'job:1'")
        page.wait(f"{ROWS}[0].querySelector('td:nth-child(2) .sub').textContent.includes('pid ')")
        page.wait(f"/^\\d+ s$/.test({ROWS}[0].querySelector('.lease-text').textContent)")
        width = "parseFloat(document.querySelector('#locks .bar i').style.width)"
        page.wait(f"{width} > 30 && {width} <= 100")
        second = box.run("job:1", "sleep", "600")
        box.run("other", "sleep", "600")
        page.wait(f"{NAMES}.join() === 'job:1,other'", "the contended lock is first")
        page.wait(f"{ROWS}[0].querySelector('.waiting b').textContent === '1'")
        page.wait("document.getElementById('sum-waiting').textContent === '1'")
        open_lock(page, "job:1")
        page.wait("document.querySelectorAll('.party').length === 2", "a holder and a waiter")
        first.terminate()
        page.wait("document.querySelectorAll('.party').length === 1", "it was handed over")
        page.wait("document.querySelectorAll('.handovers tbody tr').length === 2")
        page.wait("document.querySelectorAll('.timeline rect[class^=h]').length === 2")
        page.wait("document.querySelectorAll('.timeline rect.waiter').length === 1")
        page.wait("[...document.querySelectorAll('.histogram .stack b')].map(b => b.textContent).join('') !== ''")
        second.terminate()
        page.wait("document.querySelector('#page-lock').innerText.includes('Nobody holds it.')")
        page.press("Escape")
        page.wait(f"{NAMES}.join() === 'other'")


def hostile_names_are_text(browser, box):
    box.introduce(1, "<b>host</b>", "<img src=x onerror=\"window.hacked=2\">", "<script>window.hacked=3</script>")
    for name in HOSTILE:
        box.hold(name, 1)
        box.wait_for(name, 1, number=2)
    box.redis.set(b"hf:{\xff\xfe}", "hf_0000000000000009.1.x", px=60000)
    with opened(browser, box) as page:
        page.wait(f"{ROWS}.length === {len(HOSTILE) + 1}")
        shown = page.run(NAMES)
        for name in ("<img src=x onerror=\"window.hacked=1\">", "\"'><script>window.hacked=1</script>", "&lt;b&gt;", "錠🔒",
                     "⟨202e⟩gnihton si siht", "a␊b␉c␀d"):
            assert name in shown, (name, shown)
        page.wait(f"{ROWS}[0].innerText.includes('<img src=x onerror=')", "the command is text")
        for number in range(len(HOSTILE) + 1):  # each page of a lock, too
            page.run(f"{ROWS}[{number}].querySelector('a.name').click()")
            page.wait("!!document.querySelector('#page-lock .timeline')")
            page.run("location.hash = '#/'")
            page.wait("!document.getElementById('page-list').hidden")
        assert page.run("typeof window.hacked") == "undefined"
        assert page.run("document.querySelectorAll('main img, main script, main b b, td script, iframe').length") == 0
        # Even a script of the page could not make markup of text.
        assert page.run("(() => { try { document.body.innerHTML = '<p>'; return 'made'; } "
                        "catch (why) { return why.name; } })()") == "TypeError"
        page.browser.events.clear()  # that was the test's own doing


def notes_are_shown_and_are_text(browser, box):
    notes = {"plain": "nightly import, asked for by Ann", "long": "begin " + "x" * 900 + " end",
             "markup": HOSTILE[0], "script": HOSTILE[1], "turned": "\u202egnihton si siht", "lines": "a\nb\tc"}
    for name, note in notes.items():
        box.run(name, "sleep", "600", options=("--note", note))
    with opened(browser, box) as page:
        page.wait(f"{ROWS}.length === {len(notes)}")
        shown = "Object.fromEntries(%s.map(tr => [tr.querySelector('a.name').textContent, tr.cells[1].lastChild.textContent]))" % ROWS
        page.wait(f"Object.values({shown}).every(note => note !== '')")
        rows = page.run(shown)
        assert rows["plain"] == notes["plain"], rows
        assert rows["markup"] == HOSTILE[0] and rows["script"] == HOSTILE[1], rows
        assert rows["turned"] == "⟨202e⟩gnihton si siht" and rows["lines"] == "a␊b␉c", rows
        assert rows["long"].startswith("begin xxx") and rows["long"].endswith("x…") and len(rows["long"]) < 300, rows
        page.press("/")
        page.type("asked for by")
        page.wait(f"{NAMES}.join() === 'plain'", "the filter looks in notes")
        page.press("Escape")
        for name, note in notes.items():  # the page of a lock has more of it
            open_lock(page, name)
            wanted = rows[name] if name != "long" else note[:500] + "…"
            page.wait(f"[...document.querySelectorAll('.party .sub')].some(one => one.textContent === {wanted!r})", name)
            page.run("location.hash = '#/'")
            page.wait("!document.getElementById('page-list').hidden")
        assert page.run("typeof window.hacked") == "undefined"
        assert page.run("document.querySelectorAll('main img, main script, td script, iframe').length") == 0
    box.redis.flushall()
    for i in range(400):  # what browsers were never sent: 3 MiB and more at once
        box.hold(f"{i:04}" + "\x01" * 1000, 1, number=i + 1)
    box.hold("big", 2)
    box.wait_for("big", 3)
    box.introduce(2, "host", "x" * 10_000_000, "user")
    with opened(browser, box) as page:
        page.wait(f"{ROWS}.length > 100")
        assert page.run(NAMES)[0] == "big"


def thousand_locks_are_filtered_and_sorted(browser, box):
    pipe = box.redis.pipeline()
    now = box.now_us()
    for i in range(1000):
        pipe.set(f"hf:{{stock:{i:04}}}", f"hf_{i:016d}.1.{i:022d}", px=600_000 - i)
        pipe.set(f"hf:{{stock:{i:04}}}:fence", now - i * 1_000_000, px=3_600_000)
    pipe.execute()
    for client in (1, 2, 3):
        box.wait_for("stock:0987", client, client)
    with opened(browser, box) as page:
        page.wait("document.getElementById('sum-held').textContent === '1000'")
        page.wait(f"{ROWS}.length === 250 && {NAMES}[0] === 'stock:0987'", "the contended lock is first")
        page.click("#more button")
        page.wait(f"{ROWS}.length === 500")
        page.press("/")
        page.type("987")
        page.wait(f"{NAMES}.join() === 'stock:0987'")
        page.press("Escape")
        page.wait(f"{ROWS}.length === 250")
        page.run("setSort('held')")
        page.wait(f"{NAMES}[0] === 'stock:0999'")
        page.run("setSort('left')")
        page.wait(f"{NAMES}[0] === 'stock:0999'")
        page.run("setSort('name')")
        page.wait(f"{NAMES}[0] === 'stock:0000'")
        box.redis.delete(*[f"hf:{{stock:{i:04}}}" for i in range(10, 1000)])
        for client in (1, 2, 3):
            box.leave("stock:0987", client)
        page.wait(f"{ROWS}.length === 10")
        # What does not change is not sent again: a thousand rows cross once.
        events = page.run("fetch('events').then(async a => { const r = a.body.getReader(); const { value } = await r.read(); "
                          "r.cancel(); return value.length; })")
        assert events < 20_000, events


def keys_do_everything(browser, box):
    for i, name in enumerate(("one", "two", "three")):
        box.hold(name, i + 1, held=10 - i)
    with opened(browser, box) as page:
        page.wait(f"{ROWS}.length === 3")
        order = page.run(NAMES)
        page.press("j")
        page.press("j")
        page.wait(f"document.activeElement.textContent === {order[1]!r}")
        page.press("k")
        page.press("Enter")
        page.wait(f"document.querySelector('#page-lock h1')?.textContent === {order[0]!r}")
        page.press("Escape")
        page.wait("!document.getElementById('page-list').hidden")
        page.press("/")
        page.type("thr")
        page.press("Enter")
        page.wait("document.activeElement.textContent === 'three'")
        page.press("Escape")
        page.wait(f"{ROWS}.length === 3")
        page.press("s")
        page.wait("document.getElementById('sort').value === 'wait'")
        page.press("?")
        page.wait("document.getElementById('help').open")
        page.run("document.getElementById('help').close()")
        page.press("h")
        page.wait("document.getElementById('page-health').innerText.includes('persistence')")
        page.wait("document.getElementById('health-badge').textContent > 0")
        page.press("l")
        page.wait("!document.getElementById('page-list').hidden")
        background = "getComputedStyle(document.documentElement).backgroundColor"
        light = page.run(background)
        page.press("t")
        page.press("t")
        page.wait(f"{background} !== {light!r}")


def phones_and_dark_rooms(browser, box):
    box.introduce(1, "a-host-with-a-very-long-name.of.some.example", "rebuild-the-cache-of-the-front-page", "application")
    for name in ("stock:1001", "cache:" + "very-long-" * 12):
        box.hold(name, 1)
        box.wait_for(name, 2, 5)
    with opened(browser, box, width=360, height=740, touch=True, dark=True) as page:
        page.wait(f"{ROWS}.length === 2")
        fits = "document.documentElement.scrollWidth <= 360"
        assert page.run(fits), page.run("document.documentElement.scrollWidth")
        assert page.run("document.documentElement.classList.contains('dark')")
        open_lock(page, "stock:1001")
        assert page.run(fits), page.run("document.documentElement.scrollWidth")
        page.run("location.hash = '#/health'")
        page.wait("document.getElementById('page-health').innerText.includes('persistence')")
        assert page.run(fits), page.run("document.documentElement.scrollWidth")


def what_is_away_comes_back(browser, box):
    with opened(browser, box) as page:
        box.hold("a", 1)
        page.wait(f"{ROWS}.length === 1")
        box.redis_process.kill()
        box.redis_process.wait()
        page.wait("!document.getElementById('banner').hidden && document.getElementById('content').className === 'stale'")
        os.unlink(os.path.join(box.path, "redis.sock"))
        box.start_redis()
        page.wait("document.getElementById('banner').hidden")
        page.wait("document.getElementById('empty').textContent.startsWith('Nobody holds a lock')")
        port = page.run("location.port")
        box.web.kill()
        box.web.wait()
        page.wait("document.getElementById('live').innerText === 'not connected'")
        box.hold("b", 1)
        box.start_web(listen="127.0.0.1:" + port)
        page.wait(f"{NAMES}.join() === 'b'")
        page.browser.events.clear()  # that the connection broke is an error to the browser


def token_opens_and_releases(browser, box):
    holder = box.run("job", "sleep", "600")
    address = box.start_web("--interval", "100ms", "--token", "--allow-release")
    page = browser.open(address.split("#")[0])
    page.wait("document.getElementById('ask-token').open")
    assert page.run("document.body.innerText.includes('sleep')") is False
    page.run("document.getElementById('token').focus()")
    page.type(address.split("#token=")[1])
    page.press("Enter")
    page.wait(f"{NAMES}.join() === 'job'")
    page.close()
    page = browser.open(address)
    page.wait(f"{NAMES}.join() === 'job'")
    assert "token" not in page.run("location.href")
    open_lock(page, "job")
    page.wait("!!document.querySelector('.party button')")
    page.run("document.querySelector('.party button').click()")
    page.wait("document.getElementById('confirm').open")
    assert page.run("document.getElementById('confirm-text').textContent").startswith("“job”, held by ")
    page.click("#confirm button.danger")
    page.wait("document.getElementById('notice').textContent.includes('stopped, and released it')")
    assert holder.wait(60) == 75
    assert page.complaints() == [], page.complaints()
    page.close()
    with opened(browser, box) as plain:
        box.hold("other", 1)
        plain.wait(f"{ROWS}.length === 1")
        open_lock(plain, "other")
        assert plain.run("document.querySelectorAll('.party button').length") == 0


TESTS = [locks_come_and_go, hostile_names_are_text, notes_are_shown_and_are_text, thousand_locks_are_filtered_and_sorted, keys_do_everything,
         phones_and_dark_rooms, what_is_away_comes_back, token_opens_and_releases]


def make_pictures(browser, box, directory):
    people = [("web-1", "rebuild-cache", "app"), ("web-2", "rebuild-cache", "app"), ("batch-3", "invoice-run", "billing"),
              ("db-1", "migrate", "deploy"), ("db-2", "migrate", "deploy"), ("worker-7", "sync-stock", "stock"),
              ("worker-9", "sync-stock", "stock"), ("ci-4", "release.sh", "ci")]
    for client, (host, program, user) in enumerate(people, 1):
        box.introduce(client, host, program, user)
    box.hold("cache:front-page", 1, 2, 86)
    box.hold("invoice:2026-11", 3, 612, 75)
    box.hold("deploy:shop", 8, 71, 82)
    box.hold("stock:1001", 6, 9, 90)
    address = box.start_web("--interval", "100ms")
    page = browser.open(address, width=1200, height=640)
    order = [7, 1, 2, 6, 7, 1, 2, 6, 7, 1, 2]
    waiting = [(7, 101), (1, 102), (2, 103)]
    for client, number in waiting:
        box.wait_for("stock:1001", client, 6 - number % 100, number)
    for step, client in enumerate(order):
        time.sleep((3, 6, 2, 4, 7, 3)[step % 6])
        if step == 6:
            box.wait_for("stock:1001", 3, 0, 900)
        if step == 8:
            box.leave("stock:1001", 3, 900)
        box.hand_over("stock:1001", client, 90, 101 + step)
        for ahead in range(1, 4):
            if step + ahead < len(order):
                if not box.redis.zscore("hf:{stock:1001}:queue", f"hf_{order[step + ahead]:016d}.{101 + step + ahead}.{order[step + ahead]:022d}"):
                    box.wait_for("stock:1001", order[step + ahead], 0, 101 + step + ahead)
        for _ in range(2):
            box.stay("stock:1001")
    for client, number in ((7, 301), (1, 302), (6, 303)):
        box.wait_for("stock:1001", client, 4 - number % 10, number)
    box.hold("db:migrate", 4, 4.1, 40)
    box.wait_for("db:migrate", 5, 3)
    page.run("document.getElementById('where').textContent = 'redis://redis-1:6379'; handlers.state = () => {}")
    page.wait(f"{ROWS}.length === 5")
    time.sleep(1.2)
    page.picture(os.path.join(directory, "web-locks.png"))
    open_lock(page, "stock:1001")
    page.call("Emulation.setDeviceMetricsOverride", width=1200, height=840, deviceScaleFactor=1, mobile=False)
    page.run("view.range = 60; renderLock()")
    time.sleep(1)
    page.picture(os.path.join(directory, "web-lock.png"))
    page.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("--pictures", metavar="DIRECTORY")
    parser.add_argument("tests", nargs="*")
    chosen = parser.parse_args()
    path = chromium.find()
    if path is None:
        print("Chromium is not installed: the page was not tested in a browser (./dev web-test installs it)")
        return 77
    binary = os.path.abspath(chosen.holdfast)
    with Box(binary) as home:
        browser = chromium.Browser(path, home.path)
        try:
            for test in TESTS:
                if chosen.tests and test.__name__ not in chosen.tests:
                    continue
                begin = time.monotonic()
                browser.events.clear()
                with Box(binary) as box:
                    test(browser, box)
                print(f"ok {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
            if chosen.pictures:
                with Box(binary) as box:
                    make_pictures(browser, box, chosen.pictures)
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
