import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type LogLine, spawnHeddle } from '../../support/heddle.ts'
import { InspectorClient, type Pause, type Place } from '../../support/inspector-client.ts'
import { until } from '../../support/until.ts'

const STALL_MS = 1500
const TIMEOUT_MS = 3000
/** Longer than a lane may stand still, and than a handler and a subscriber may take. */
const HELD_MS = 4000
/** As somebody who looks around: longer than any other deadline, too. */
const LONG_MS = 30_000
const PATIENCE_MS = 30_000

const plugin = (version: number): string => `export default class Tell {
  constructor({ http, event_bus }: any) {
    http.addEndpoint('/version', 'GET', this.tell)
    http.addEndpoint('/publish', 'POST', () => event_bus.publish('told', {}).then(() => ({})))
    http.addEndpoint('/other', 'GET', () => ({ other: true }))
    http.addEndpoint('/spin', 'GET', this.spin)
    event_bus.subscribe('told', this.handle, { timeoutMs: ${TIMEOUT_MS}, retries: 0 })
  }
  tell(): object {
    const version: number = ${version}
    return { version } // stop in the handler
  }
  async handle(): Promise<void> {
    await null
    console.log('handled') // stop in the subscriber
  }
  spin(): void {
    for (;;) {} // spin
  }
}
`
const lineOf = (comment: string): number => {
  const line = plugin(1)
    .split('\n')
    .findIndex((text) => text.endsWith(`// ${comment}`))
  return line + 1
}

/** A service, and the debugger of an editor that has breakpoints at these places of its plugin's file, or elsewhere. */
async function debugged(
  t: TestContext,
  placesIn: (file: string) => Place[],
  { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {},
) {
  const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin(1) })
  const file = join(folder, 'shop/plugins/tell.ts')
  const { child, logs, errors } = await spawnHeddle(t, {
    domains: [folder],
    lanes: 1,
    args: [...args, '--inspect=127.0.0.1:0'],
    env: { LANE_STALL_MS: String(STALL_MS), ...env },
  })
  const logged = (text: string, from = 0): Promise<LogLine> =>
    until(() => logs.slice(from).find(({ msg }) => msg.includes(text)), text, PATIENCE_MS)
  const said = (text: RegExp) => until(() => text.exec(errors.join('')), String(text), PATIENCE_MS)
  const base = (await logged('Serving on ')).msg.replace('Serving on ', '')
  const [, url] = await said(/Debugger listening on (ws:\S+)/)
  const places = placesIn(file)
  const editor = await InspectorClient.connect(url!, places)
  t.after(() => editor.close())
  const bound = (count: number) => until(() => editor.bound >= count, `${count} breakpoints`, PATIENCE_MS)
  await bound(places.length)
  return {
    file,
    logs,
    logged,
    said,
    editor,
    bound,
    paused: (count: number): Promise<Pause> => until(() => editor.pauses[count - 1], `pause ${count}`, PATIENCE_MS),
    get: async (path: string, method = 'GET') => {
      const response = await fetch(base + path, { method })
      return { status: response.status, body: await response.json() }
    },
    /** @param leave has the debugger leave a process that is about to end */
    end: async (leave = async () => {}) => {
      child.kill('SIGTERM')
      await leave()
      // A signal that ends it leaves no code.
      await until(() => child.exitCode !== null || child.signalCode !== null, 'the end', PATIENCE_MS)
      assert.deepEqual([child.exitCode, child.signalCode], [0, null], errors.slice(-20).join(''))
    },
  }
}

const stopIn = (file: string, comment: string): Place => ({ file, line: lineOf(comment) })

test('while a debugger is attached no time limit holds, and breakpoints survive a reload; when it is gone a loop ends its lane', async (t) => {
  const places = (of: string) => [stopIn(of, 'stop in the handler'), stopIn(of, 'stop in the subscriber')]
  const env = { HTTP_HANDLER_TIMEOUT_MS: String(TIMEOUT_MS) }
  const { file, logs, logged, editor, bound, paused, get, end } = await debugged(t, places, {
    args: ['--watch'],
    env,
  })
  const [handler, subscriber] = places(file)
  /** Time itself is what is tested here. */
  const hold = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

  const first = get('/version')
  const inHandler = await paused(1)
  assert.deepEqual(inHandler.place, handler)
  assert.equal(inHandler.functionName, 'tell')
  await hold(LONG_MS)
  assert.equal((await get('/other')).status, 200, 'another thread serves meanwhile')
  await inHandler.thread.resume()
  assert.deepEqual(await first, { status: 200, body: { version: 1 } })

  // The subscriber may stop the thread that has yet to answer.
  const published = get('/publish', 'POST')
  const inSubscriber = await paused(2)
  assert.deepEqual(inSubscriber.place, subscriber)
  await hold(HELD_MS)
  await inSubscriber.thread.resume()
  await published

  const [before, boundBefore] = [logs.length, editor.bound]
  writeFileSync(file, plugin(2))
  await logged('Reloaded in', before)
  await bound(boundBefore + 2)
  const second = get('/version')
  const again = await paused(3)
  assert.deepEqual(again.place, handler)
  assert.notEqual(again.thread, inHandler.thread)
  await again.thread.resume()
  assert.deepEqual(await second, { status: 200, body: { version: 2 } })
  assert.deepEqual(
    logs.filter(({ msg }) => / died: |did not finish|gave up|dead letter/.test(msg)),
    [],
  )

  const spun = get('/spin')
  await hold(2 * STALL_MS)
  assert.equal(
    logs.find(({ msg }) => msg.includes(' died: ')),
    undefined,
    'it may be looked at',
  )
  editor.close()
  const death = await logged(' died: ')
  assert.match(death.msg, new RegExp(`tell\\.ts:${lineOf('spin')}:`))
  assert.equal((await spun).status, 504)
  await end()
})

test('a breakpoint in a module whose map lies in a file of its own stops at its line', async (t) => {
  const file = fileURLToPath(new URL('../../../src/lane/ring-ports.ts', import.meta.url))
  const [before] = readFileSync(file, 'utf8').split('this.#steps.end(id, status >= 500)')
  const answer = { file, line: before!.split('\n').length }
  const { get, paused } = await debugged(t, () => [answer])
  const answered = get('/version')
  const { place, functionName, thread } = await paused(1)
  assert.deepEqual([place, functionName], [answer, 'answer'])
  await thread.resume()
  assert.deepEqual((await answered).body, { version: 1 })
})

test('a debugger that dies at a breakpoint leaves no lane standing: it goes on', async (t) => {
  const { logs, editor, paused, get, end } = await debugged(t, (file) => [stopIn(file, 'stop in the handler')])
  const held = get('/version')
  await paused(1)
  editor.die()
  assert.deepEqual((await held).body, { version: 1 })

  // Its breakpoint is still there.
  assert.deepEqual((await get('/version')).body, { version: 1 })
  assert.deepEqual(
    logs.filter(({ msg }) => msg.includes(' died: ')),
    [],
  )
  await end()
})
