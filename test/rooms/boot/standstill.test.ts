import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deathsIn } from '../lanes/deadly.ts'
import { type Bad, pluginsOf, startBeside } from './left-out.ts'

/** Boots after all others, and for as long as theirs have left something. */
const WAITS = `export default class Waits {
  async onBoot() { await new Promise((resolve) => setTimeout(resolve, 1000)) }
}`

/** Inside of a native call: no stack can be taken. */
const BLOCK = "execFileSync('sleep', ['600'])"
const IMPORT = "import { execFileSync } from 'node:child_process'\n"
const inClass = (name: string, members: string): string => `export default class ${name} { ${members} }`
const sleep = (ms: number): string => `await new Promise((resolve) => setTimeout(resolve, ${ms}))`

/** Each stands still in its boot, or begins there what stands still while another one boots. */
const BLOCKING: Readonly<Record<string, string>> = {
  Awaiting: inClass('Awaiting', `async onBoot() { ${sleep(20)}; ${BLOCK} }`),
  Building: inClass('Building', `constructor() { setTimeout(() => { ${BLOCK} }, 100) }`),
  Module: `setTimeout(() => { ${BLOCK} }, 100)\n${inClass('Module', '')}`,
  Promised: inClass(
    'Promised',
    `onBoot() { void new Promise((resolve) => setTimeout(resolve, 100)).then(() => { ${BLOCK} }) }`,
  ),
  Ticking: inClass('Ticking', `onBoot() { setTimeout(() => process.nextTick(() => { ${BLOCK} }), 100) }`),
  Listening: `import { createServer, connect } from 'node:net'
${inClass('Listening', `onBoot() { const server = createServer(() => { ${BLOCK} }).listen(0, '127.0.0.1', () => connect(server.address().port)) }`)}`,
}

test('what stands still in a native call while another plugin boots is named, and not that one', async (t) => {
  const bad: Bad = Object.fromEntries(
    Object.entries(BLOCKING).map(([name, code]) => [
      name,
      { code: IMPORT + code, says: new RegExp(`stood still .*\\(.*${name}\\.ts[:\\d]*\\)`) },
    ]),
  )
  const heddle = await startBeside(t, bad, { lanes: 1, others: { 'waits/plugins/waits.ts': WAITS } })
  assert.equal((await pluginsOf(heddle))['waits.Waits'].status, 'OK')
  for (const { msg } of deathsIn(heddle)) assert.match(msg, /bad\/plugins\/\w+\.ts[:\d]*$/)
  assert.equal(await heddle.stop(), 0)
})
