import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Terminal, wantsColours } from '../../../src/primary/logging/terminal.ts'

test('colours are for terminals that have some, unless somebody says otherwise', () => {
  assert.equal(wantsColours(true, { TERM: 'xterm' }), true)
  assert.equal(wantsColours(true, {}), true)
  assert.equal(wantsColours(false, { TERM: 'xterm' }), false)
  assert.equal(wantsColours(true, { TERM: 'dumb' }), false)
  assert.equal(wantsColours(true, { NO_COLOR: '1' }), false)
  assert.equal(wantsColours(true, { NO_COLOR: '' }), true, 'empty counts as unset')
  assert.equal(wantsColours(false, { FORCE_COLOR: '1' }), true)
  assert.equal(wantsColours(true, { FORCE_COLOR: '0' }), false)
  assert.equal(wantsColours(false, { FORCE_COLOR: '1', NO_COLOR: '1' }), true)
})

/** A terminal of ten columns, and what it was sent. */
function terminalOf(isTerminal: boolean) {
  let sent = ''
  const terminal = new Terminal(
    (text) => {
      sent += text
    },
    isTerminal,
    {},
    () => 10,
  )
  return { terminal, sent: () => sent }
}

test('a line is written over until a whole one comes, and never wraps', () => {
  const { terminal, sent } = terminalOf(true)
  terminal.replace('one')
  terminal.replace('one')
  terminal.replace('a line that is too long')
  terminal.write('whole\n')
  terminal.replace('two')
  terminal.clear()
  terminal.clear()
  terminal.write('end\n')
  assert.equal(sent(), 'one\r\x1b[Ka line th\nwhole\ntwo\r\x1b[Kend\n')
})

test('where nothing can be written over, only whole lines are written', () => {
  const { terminal, sent } = terminalOf(false)
  terminal.replace('one')
  terminal.clear()
  terminal.write('whole\n')
  assert.equal(sent(), 'whole\n')
  assert.equal(terminal.paint('red', 'text'), 'text')
})
