import { el } from '/system/docs/dom.js'

const KEYWORDS = 'import from const await async for of new return'
/** What is coloured in each language, by the class that it gets. */
const PATTERNS = {
  json: /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\]|\\.)*")|\b(?<word>true|false|null)\b|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g,
  js: new RegExp(
    `(?<comment>//[^\\n]*)|(?<string>'(?:[^'\\\\]|\\\\.)*')|\\b(?<word>true|false|null|${KEYWORDS.replaceAll(' ', '|')})\\b|(?<key>[\\w$]+(?=: ))|\\b(?<number>\\d+(?:\\.\\d+)?)\\b`,
    'g',
  ),
  sh: /(?<string>'[^']*')|(?<word>\bcurl\b)|(?<key>(?<=\s)--?[A-Za-z-]+)/g,
}
PATTERNS.ts = PATTERNS.js
/** A text of more characters is shown without colours. */
const COLOURED_MAX_CHARS = 100_000

/** JSON, indented and coloured. */
export function jsonBlock(value) {
  return codeBlock(JSON.stringify(value, null, 2) ?? '')
}

/** A text as it is, coloured. @param {'json' | 'js' | 'ts' | 'sh'} language */
export function codeBlock(text, language = 'json') {
  const pre = el('pre.code', { tabindex: '0' })
  if (text.length > COLOURED_MAX_CHARS) {
    pre.textContent = text
    return pre
  }
  let at = 0
  for (const match of text.matchAll(PATTERNS[language])) {
    const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined)
    pre.append(text.slice(at, match.index), el(`span.code-${kind}`, {}, match[0]))
    at = match.index + match[0].length
  }
  pre.append(text.slice(at))
  return pre
}
