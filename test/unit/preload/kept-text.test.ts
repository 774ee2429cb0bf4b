// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of modules
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

const { oneByte } = createRequire(import.meta.url)('../../../src/preload/typescript/kept-text.cjs') as {
  oneByte(path: string, body: string): string
}

test('a wide character in a comment becomes a question mark, at its place', () => {
  const comments = [
    'const a = 1 // an arrow → and a dash —',
    '/* — */ const a = 1',
    '/**\n * → 😀 "\'` ${ [/]\n */\nfunction a() { /* — */ return `${1 /* → */}` } // —',
    'const a = \'x\' /*→*/ + "y" //→',
    'const a = /[/]/ // →',
    'const a = "narrow: é ·" // →',
  ]
  for (const body of comments) {
    const narrow = oneByte('/a.js', body)
    assert.equal(narrow, body.replace(/[^\0-\xff]/g, '?'))
    assert.equal(narrow.length, body.length)
  }
})

test('a text with a wide character in its code stays as it is', () => {
  const codes = [
    "const a = '→'",
    'const a = "→"',
    "const a = 'it\\'s →'",
    'const a = `→`',
    'const a = `${1}→`',
    'const a = `${`→`}`',
    'const a = `\n// →\n`',
    "const a = 'one \\\n// →'",
    'const a = /→/',
    'const a = /[→]/',
    'const a = /[/→"]/u',
    "const a = { '→': 1 }",
    "const a = { '→'() {} }",
    'const π = 1',
    "'→'",
    'function a() { if (false) { return "→" } }',
    '// →\nconst a = "→"',
    'const a = "→" // →',
  ]
  for (const body of codes) assert.equal(oneByte('/a.js', body), body)
})
