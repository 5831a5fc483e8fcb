//! Where texts stand: none is clipped, lies over another one, or is broken within a word, at any width and in both themes.

use std::path::Path;

use arenite_tests::browser::Browser;
use serde_json::Value;

use super::{opened, page_of, pair_of, resize};

/// Finds texts that are broken within a word, cut off, or over another. A frame that is moved or scrolled shows a part by design: only what can be
/// seen in it counts.
const AUDIT: &str = r#"(() => {
  const FRAMES = '#graph-frame, .scroll, .plot, pre, #detail', problems = [], seen = [];
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const said = (text) => text.trim().slice(0, 60);
  const inside = (r, box) => r.left >= box.left - 1.5 && r.right <= box.right + 1.5 && r.top >= box.top - 1.5 && r.bottom <= box.bottom + 1.5;
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('script, style, noscript, option, svg title') || !visible(parent)) continue;
    const picture = parent.closest('svg'), range = document.createRange();
    const rects = [];
    if (picture) rects.push(parent.getBoundingClientRect());
    else {
      // A hyphen, or a mark with `wbr` behind it, may end a line; the latter ends a text node as well.
      for (const word of node.data.matchAll(/[^\s-]+-*/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const parts = [...range.getClientRects()].filter((r) => r.width > 0);
        if (new Set(parts.map((r) => Math.round(r.top))).size > 1) problems.push(`broken: ${said(word[0])} in ${said(node.data)}`);
        rects.push(...parts);
      }
    }
    const frame = parent.closest(FRAMES), shown = frame?.getBoundingClientRect();
    for (const r of rects) {
      // Text that a frame does not show now is not looked at; text that it shows in part neither.
      if (shown && !inside(r, shown)) continue;
      for (let box = parent; box && box !== frame; box = box.parentElement) {
        const style = getComputedStyle(box);
        if (style.overflowX === 'visible' && style.overflowY === 'visible' || box === document.body) continue;
        if (!inside(r, box.getBoundingClientRect())) problems.push(`clipped: ${said(node.data)} by ${box.tagName}.${box.className}`);
      }
      if (picture) {
        const group = parent.closest('g.node, g.port, g.tensor, g.tile');
        const box = (group?.querySelector('rect') ?? picture).getBoundingClientRect();
        if (!inside(r, box)) problems.push(`clipped: ${said(node.data)} by its box`);
      }
      if (!frame && (r.left < -1 || r.right > document.documentElement.clientWidth + 1)) problems.push(`clipped: ${said(node.data)} by the window`);
      // An element that floats over the page hides a part of it by design; what is read in one line is one text.
      if (!parent.closest('nav, #detail')) seen.push({ r, node, text: said(node.data) });
    }
  }
  seen.sort((a, b) => a.r.top - b.r.top);
  seen.forEach((one, index) => {
    for (let next = index + 1; next < seen.length && seen[next].r.top < one.r.bottom; next++) {
      const other = seen[next];
      if (other.node === one.node) continue;
      const across = Math.min(one.r.right, other.r.right) - Math.max(one.r.left, other.r.left);
      const down = Math.min(one.r.bottom, other.r.bottom) - Math.max(one.r.top, other.r.top);
      if (across > 1.5 && down > 2.5) problems.push(`overlapping: ${one.text} and ${other.text}`);
    }
  });
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1) problems.push('clipped: the page is wider than its window');
  return { problems, texts: seen.length };
})()"#;

/// Returns the faults of the texts of the page as it stands.
pub(super) fn problems(browser: &mut Browser) -> Vec<String> {
    let found = browser.value(AUDIT);
    assert!(found["texts"].as_u64() > Some(20), "no texts were looked at: {found}");
    serde_json::from_value(found["problems"].clone()).expect("texts")
}

fn looked_at(page: &Path, folder: &Path) {
    let Some(mut browser) = opened("texts of the page", folder, page) else {
        return;
    };
    for width in [1400, 400] {
        for theme in ["light", "dark"] {
            resize(&mut browser, [width, 900], theme);
            let mut look = |what: &str| {
                let found = problems(&mut browser);
                assert!(found.is_empty(), "{what} at {width}, {theme}: {found:#?}");
                browser.value("1")
            };
            look("as it opens");
            // Everything that can be opened is.
            let all =
                "for (const part of document.querySelectorAll('details:not(.trace)')) part.open = true; choose(1); 1";
            browser.value(all);
            let found = problems(&mut browser);
            assert!(found.is_empty(), "all open at {width}, {theme}: {found:#?}");
            browser
                .value("for (const part of document.querySelectorAll('details')) part.open = false; choose(null); 1");
            // Ink and paper are those of the theme.
            let paper = browser.value("getComputedStyle(document.body).backgroundColor");
            let expected = if theme == "dark" {
                "rgb(20, 24, 31)"
            } else {
                "rgb(255, 255, 255)"
            };
            assert_eq!(paper, expected);
        }
    }
    // The button turns the theme of the system over.
    browser.click("#theme");
    assert_eq!(
        browser.value("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
}

#[test]
fn no_text_is_clipped_over_another_or_broken() {
    for name in ["digits", "residual"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, _) = page_of(name, folder.path());
        looked_at(&page, folder.path());
    }
    let folder = tempfile::tempdir().expect("a folder");
    looked_at(&pair_of(["digits", "mlp"], folder.path()), folder.path());
}

/// Each finding is found where it is made.
#[test]
fn what_is_wrong_with_a_text_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (page, _) = page_of("digits", folder.path());
    let Some(mut browser) = opened("texts that are wrong", folder.path(), &page) else {
        return;
    };
    for (style, finding) in [
        ("#verdict { width: 60px; overflow-wrap: anywhere }", "broken: "),
        ("#fits b { width: 12px; overflow: hidden }", "clipped: "),
        ("#time .note { margin-top: -14px }", "overlapping: "),
        ("svg.graph text { font-size: 22px }", "by its box"),
        ("svg.arena g.tensor text { transform: translateX(-14px) }", "by its box"),
        ("#verdict { white-space: nowrap; font-size: 40px }", "by the window"),
    ] {
        assert!(problems(&mut browser).is_empty());
        let change = format!(
            "document.head.appendChild(Object.assign(document.createElement('style'), {{ id: 'wrong', textContent: {style:?} }})); 1"
        );
        browser.value(&change);
        let found = problems(&mut browser);
        assert!(
            found.iter().any(|problem| problem.contains(finding)),
            "{style}: {found:?}"
        );
        assert_ne!(
            browser.value("document.getElementById('wrong').remove(); 1"),
            Value::Null
        );
    }
}
