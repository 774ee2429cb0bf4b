import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResponseReader } from '../../../bench/load/client.ts'
import { Progress } from '../../../bench/progress.ts'
import { Terminal } from '../../../src/primary/logging/terminal.ts'

function run(isTerminal: boolean): string {
  let sent = ''
  let nowMs = 0
  const write = (text: string): void => {
    sent += text
  }
  const progress = new Progress(new Terminal(write, isTerminal, {}, () => 100), () => nowMs)
  progress.begin('hello', 1, 11)
  nowMs = 30_000
  progress.step('round 2 of 5, fastify', 0.25)
  progress.say('round 1 heddle 1/s')
  progress.end()
  return sent
}

test('a terminal shows case, round, side and time left on one line below the figures', () => {
  const line = 'hello (1 of 11)  round 2 of 5, fastify  about 1:30 left'
  const over = '\r\x1b[K'
  const sent = `hello (1 of 11)  starting${over}${line}${over}  round 1 heddle 1/s\n${line}${over}`
  assert.equal(run(true), sent)
})

test('elsewhere there are the figures alone, a line each', () => {
  assert.equal(run(false), '  round 1 heddle 1/s\n')
})

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"ok":"yes"}'

function read(reader: ResponseReader, text: string) {
  const bytes = Buffer.from(text)
  return reader.read(bytes, bytes.length)
}

test('an answer is complete in whatever two pieces it arrives', () => {
  const reader = new ResponseReader()
  for (let at = 1; at < ANSWER.length; at++) {
    assert.equal(read(reader, ANSWER.slice(0, at)), 'more', `first ${at} bytes`)
    assert.equal(read(reader, ANSWER.slice(at)), 'ok', `split at ${at}`)
  }
})

test('an answer is complete when it arrives byte by byte in a buffer that is reused', () => {
  const reader = new ResponseReader()
  const buffer = Buffer.alloc(1)
  const outcomes = [...ANSWER].map((character) => {
    buffer.write(character)
    return reader.read(buffer, 1)
  })
  assert.equal(outcomes.pop(), 'ok')
  assert.ok(outcomes.every((outcome) => outcome === 'more'))
})

test('an answer of the shape of the one before it still counts by its own status', () => {
  const reader = new ResponseReader()
  assert.equal(read(reader, ANSWER), 'ok')
  assert.equal(read(reader, ANSWER.replace('200 OK', '503 No')), 'non2xx')
  assert.equal(read(reader, ANSWER), 'ok')
})

test('an answer as long as the one before it, but with a longer body announced, is not complete', () => {
  const reader = new ResponseReader()
  assert.equal(read(reader, ANSWER), 'ok')
  assert.equal(read(reader, ANSWER.replace('Length: 12', 'Length: 13')), 'more')
  assert.equal(read(reader, '!'), 'ok')
})

test('an answer without a body counts without a length', () => {
  assert.equal(read(new ResponseReader(), 'HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n'), 'ok')
})

for (const [what, text] of [
  ['bytes behind the answer', `${ANSWER}x`],
  ['a chunked answer', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['something that is not HTTP', 'hello\r\n\r\n'],
] as const) {
  test(`${what} cannot be framed`, () => {
    assert.equal(read(new ResponseReader(), text), 'broken')
  })
}
