import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { STREAM_SCRIPTS } from '../../../src/runtime/redis-streams/stream-commands.ts'
import { readScript } from '../../../src/stores/redis/client.ts'
import { streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const FOLDER = new URL('../../../src/runtime/redis-streams/commands/', import.meta.url)

test("each script's name says how many keys it takes, and its head what it takes, gives and guarantees", () => {
  const names = readdirSync(FOLDER)
  assert.equal(names.length, STREAM_SCRIPTS.length)
  for (const name of names) {
    const script = readScript(new URL(name, FOLDER))
    assert.ok(
      STREAM_SCRIPTS.some(({ sha }) => sha === script.sha),
      `${name} is used`,
    )
    const keys = new Set([...script.lua.matchAll(/KEYS\[(\d+)\]/g)].map(([, index]) => Number(index)))
    assert.equal(Math.max(...keys), Number(/-(\d)\.lua$/.exec(name)![1]), name)
    const head = script.lua.slice(0, script.lua.indexOf(']]\n'))
    assert.match(head, /^--\[\[\n {2}\S/, name)
    if (/\breturn\b/.test(script.lua.slice(head.length))) assert.match(head, /\n {2}Output: /, name)
    if (!name.startsWith('list-')) assert.match(head, /\n {2}Guarantee: /, name)
  }
})

testOnStreams('the server takes every script', async (store) => {
  for (const { lua, sha } of STREAM_SCRIPTS) assert.equal(await store.redis.command('script', ['LOAD', lua]), sha)
})
