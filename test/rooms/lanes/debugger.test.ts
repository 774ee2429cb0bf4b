import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { type LogLine, spawnHeddle } from '../../support/heddle.ts'
import { InspectorClient, type Pause } from '../../support/inspector-client.ts'
import { until } from '../../support/until.ts'

const STALL_MS = 1500
const TIMEOUT_MS = 1000
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

describe('with a debugger at a service that reloads', () => {
  test('a lane at a breakpoint is not ended, nothing in it is late, breakpoints survive a reload, and a loop still ends its lane', async (t) => {
    const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin(1) })
    const file = join(folder, 'shop/plugins/tell.ts')
    const { child, logs, errors } = await spawnHeddle(t, {
      domains: [folder],
      lanes: 1,
      args: ['--watch', '--inspect=127.0.0.1:0'],
      env: {
        LANE_STALL_MS: String(STALL_MS),
        HTTP_HANDLER_TIMEOUT_MS: String(TIMEOUT_MS),
      },
    })
    const logged = (text: string, from = 0): Promise<LogLine> =>
      until(() => logs.slice(from).find(({ msg }) => msg.includes(text)), text, PATIENCE_MS)
    const url = await until(
      () => /Debugger listening on (ws:\S+)/.exec(errors.join(''))?.[1],
      'the inspector',
      PATIENCE_MS,
    )
    const base = (await logged('Serving on ')).msg.replace('Serving on ', '')
    const get = async (path: string, method = 'GET') => {
      const response = await fetch(base + path, { method })
      return { status: response.status, body: await response.json() }
    }
    const places = ['stop in the handler', 'stop in the subscriber'].map((comment) => ({ file, line: lineOf(comment) }))
    const editor = await InspectorClient.connect(url, places)
    t.after(() => editor.close())
    const paused = (count: number): Promise<Pause> =>
      until(() => editor.pauses[count - 1], `pause ${count}`, PATIENCE_MS)
    /** Time itself is what is tested here. */
    const hold = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

    const bound = (count: number) => until(() => editor.bound >= count, `${count} breakpoints`, PATIENCE_MS)

    await bound(2)
    const first = get('/version')
    const inHandler = await paused(1)
    assert.deepEqual(inHandler.place, places[0])
    assert.equal(inHandler.functionName, 'tell')
    await hold(LONG_MS)
    assert.equal((await get('/other')).status, 200, 'another thread serves meanwhile')
    await logged('Lane 0 stands at a breakpoint')
    await inHandler.thread.resume()
    assert.deepEqual(await first, { status: 200, body: { version: 1 } })

    await get('/publish', 'POST')
    const inSubscriber = await paused(2)
    assert.deepEqual(inSubscriber.place, places[1])
    await hold(HELD_MS)
    await inSubscriber.thread.resume()

    const [before, boundBefore] = [logs.length, editor.bound]
    writeFileSync(file, plugin(2))
    await logged('Reloaded in', before)
    await bound(boundBefore + 2)
    const second = get('/version')
    const again = await paused(3)
    assert.deepEqual(again.place, places[0])
    assert.notEqual(again.thread, inHandler.thread)
    await again.thread.resume()
    assert.deepEqual(await second, { status: 200, body: { version: 2 } })
    assert.deepEqual(
      logs.filter(({ msg }) => / died: |did not finish|gave up|dead letter/.test(msg)),
      [],
    )

    const spun = get('/spin')
    const death = await logged(' died: ')
    assert.match(death.msg, new RegExp(`tell\\.ts:${lineOf('spin')}:`))
    assert.equal((await spun).status, 504)

    child.kill('SIGTERM')
    // Node waits for debuggers at its end, and editors know it.
    await until(() => errors.join('').includes('Waiting for the debugger to disconnect'), 'what Node says', PATIENCE_MS)
    editor.close()
    await until(() => child.exitCode !== null, 'the end', PATIENCE_MS)
    assert.equal(child.exitCode, 0)
  })
})

test('a breakpoint in a module whose map lies in a file of its own stops at its line', async (t) => {
  const file = fileURLToPath(new URL('../../../src/lane/ring-ports.ts', import.meta.url))
  const answer = 'this.#steps.end(id, reply.status >= 500)'
  const line = readFileSync(file, 'utf8').slice(0, readFileSync(file, 'utf8').indexOf(answer)).split('\n').length
  const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin(1) })
  const { logs, errors } = await spawnHeddle(t, { domains: [folder], lanes: 1, args: ['--inspect=127.0.0.1:0'] })
  const serving = await until(() => logs.find(({ msg }) => msg.startsWith('Serving on ')), 'the start', PATIENCE_MS)
  const url = /Debugger listening on (ws:\S+)/.exec(errors.join(''))![1]!
  const editor = await InspectorClient.connect(url, [{ file, line }])
  t.after(() => editor.close())
  await until(() => editor.bound >= 1, 'the breakpoint', PATIENCE_MS)

  const answered = fetch(`${serving.msg.replace('Serving on ', '')}/version`)
  const { place, functionName, thread } = await until(() => editor.pauses[0], 'a pause', PATIENCE_MS)
  assert.deepEqual([place, functionName], [{ file, line }, 'answer'])
  await thread.resume()
  assert.deepEqual(await (await answered).json(), { version: 1 })
})

test('a debugger that dies at a breakpoint leaves no lane standing: it goes on, and the log says so', async (t) => {
  const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin(1) })
  const file = join(folder, 'shop/plugins/tell.ts')
  const { child, logs, errors } = await spawnHeddle(t, {
    domains: [folder],
    lanes: 1,
    args: ['--inspect=127.0.0.1:0'],
    env: { LANE_STALL_MS: String(STALL_MS) },
  })
  const logged = (text: string): Promise<LogLine> =>
    until(() => logs.find(({ msg }) => msg.includes(text)), text, PATIENCE_MS)
  const base = (await logged('Serving on ')).msg.replace('Serving on ', '')
  const url = /Debugger listening on (ws:\S+)/.exec(errors.join(''))![1]!
  const editor = await InspectorClient.connect(url, [{ file, line: lineOf('stop in the handler') }])
  t.after(() => editor.close())
  await until(() => editor.bound === 1, 'the breakpoint', PATIENCE_MS)

  const held = fetch(`${base}/version`)
  await until(() => editor.pauses[0], 'a pause', PATIENCE_MS)
  await logged('Lane 0 stands at a breakpoint')
  editor.die()
  assert.deepEqual(await (await held).json(), { version: 1 })
  await logged('Lane 0 stood at a breakpoint of a debugger that is gone')

  // Its breakpoint is still there.
  assert.deepEqual(await (await fetch(`${base}/version`)).json(), { version: 1 })
  assert.deepEqual(
    logs.filter(({ msg }) => msg.includes(' died: ')),
    [],
  )
  child.kill('SIGTERM')
  await until(() => child.exitCode !== null, 'the end', PATIENCE_MS)
  assert.equal(child.exitCode, 0)
})
