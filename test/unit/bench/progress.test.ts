import assert from 'node:assert/strict'
import { test } from 'node:test'
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
