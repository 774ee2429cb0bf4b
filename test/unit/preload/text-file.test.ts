import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readText, TextFault, textOf } from '../../../src/preload/text-file.cjs'
import { temporaryFolder } from '../../support/folder.ts'

const FILE = '/etc/shop/001_one.sql'

/** Bytes that are no text in UTF-8, and what is said of them behind the file's name. */
const REFUSED: Record<string, [bytes: Buffer, said: string]> = {
  'Latin-1': [Buffer.from('a\r\nb\nMüller', 'latin1'), ':3: the byte 0xFC (ü in Latin-1) in column 2 is not UTF-8'],
  'Latin-1 behind UTF-8': [
    Buffer.concat([Buffer.from('é🧵 '), Buffer.from('ü', 'latin1')]),
    ':1: the byte 0xFC (ü in Latin-1) in column 5 is not UTF-8',
  ],
  'Windows-1252': [Buffer.from([0x80]), ':1: the byte 0x80 in column 1 is not UTF-8'],
  'a cut character': [Buffer.from([0x61, 0xe2, 0x82]), ':1: the byte 0xE2 (â in Latin-1) in column 2 is not UTF-8'],
  'an overlong one': [Buffer.from([0xc0, 0xaf]), ':1: the byte 0xC0'],
  'half a pair': [Buffer.from([0xed, 0xa0, 0x80]), ':1: the byte 0xED'],
  'UTF-16': [Buffer.from('\ufeffCREATE', 'utf16le'), ':1: this is UTF-16'],
  'UTF-16 of the other order': [Buffer.from('\ufeffCREATE', 'utf16le').swap16(), ':1: this is UTF-16'],
}

test('textOf(): UTF-8 is read as it is, without its byte order mark', () => {
  for (const text of ['', 'a', 'Müller\r\n日本 🧵\u2028\ufffd', 'a\ufeffb'])
    for (const mark of ['', '\ufeff']) assert.equal(textOf(Buffer.from(mark + text), FILE), text)
})

test('textOf(): any other bytes are refused with file, line and what they are', () => {
  for (const [what, [bytes, said]] of Object.entries(REFUSED))
    assert.throws(
      () => textOf(bytes, FILE),
      (fault) => {
        assert.ok(fault instanceof TextFault, what)
        assert.ok(fault.message.startsWith(FILE + said), fault.message)
        assert.match(fault.message, /Save the file as UTF-8\.$/)
        assert.equal(fault.line, Number(said.split(':')[1]))
        return true
      },
    )
})

test('readText(): UTF-16 without a mark, and any other text with a NUL, is refused', (t) => {
  const path = join(temporaryFolder(t), 'one.env')
  for (const [bytes, line] of [
    [Buffer.from('A=1', 'utf16le'), 1],
    [Buffer.from('A=1\nB=\0'), 2],
  ] as const) {
    writeFileSync(path, bytes)
    assert.throws(() => readText(path), {
      name: 'TextFault',
      message: `${path}:${line}: a NUL, which no text has. Save the file as UTF-8.`,
    })
  }
})
