import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startTalk, talk } from './support.ts'

const TAKES_MEMORY = fileURLToPath(new URL('freed-memory.cjs', import.meta.url))

const start = startTalk({ lanes: 1, env: { NODE_OPTIONS: `--require ${TAKES_MEMORY}` } })

test('a socket stays open whatever takes the memory that its handshake has freed', async () => {
  const heddle = await start()
  for (let n = 0; n < 20; n++) {
    const client = await talk(heddle)
    client.send('still there?')
    assert.equal(await client.text(2), 'still there?')
    client.tcp.destroy()
  }
})
