import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Piscina } from 'piscina'
import { framesOfStack, STACK_MAX_FRAMES, type StackFrame, shownFrame } from '../../../src/core/errors/places.ts'
import { stackOf } from '../../../src/primary/supervision/stack-probe.ts'
import { BEGUN, ENDED, type How, type Task } from '../../fixtures/lanes/stack/stuck.ts'
import { startHeddle } from '../../support/heddle.ts'
import { LOADER } from '../../support/loader.ts'
import { until } from '../../support/until.ts'

const FOLDER = fileURLToPath(new URL('../../fixtures/lanes/stack', import.meta.url))
const STUCK = `${FOLDER}/stuck.ts`
const NESTED = `${FOLDER}/nested.ts`
const SPIN = `${FOLDER}/runtime/loops/plugins/spin.ts`
/** For a machine that does other things too: an answer comes within tens of milliseconds. */
const PATIENCE_MS = 20_000

/** The number of the line that holds a comment. */
function lineOf(file: string, comment: string): number {
  const index = readFileSync(file, 'utf8')
    .split('\n')
    .findIndex((line) => line.endsWith(`// ${comment}`))
  assert.ok(index >= 0, `${file} has the comment ${comment}`)
  return index + 1
}

interface Thread {
  readonly id: number
  ended(): number
  /** Resolves when the thread is gone. */
  terminate(): Promise<void>
}

/** A thread that has begun to do what it is told, as a lane has: the one task of a Piscina thread. */
async function stuckThread(t: TestContext, how: How): Promise<Thread> {
  const pool = new Piscina<Task>({ filename: STUCK, minThreads: 1, maxThreads: 1, atomics: 'disabled' })
  pool.on('error', () => {})
  const words = new Int32Array(new SharedArrayBuffer(12))
  const abort = new AbortController()
  const gone = pool.run({ how, memory: words.buffer as SharedArrayBuffer }, { signal: abort.signal }).then(
    () => {},
    () => {},
  )
  await until(() => Atomics.load(words, BEGUN) === 1, `${how} to begin`)
  const id = pool.threads[0]!.threadId
  const exited = new Promise<void>((resolve) => pool.threads[0]!.once('exit', () => resolve()))
  const terminate = async (): Promise<void> => {
    abort.abort()
    await gone
    await pool.destroy()
    await exited
  }
  t.after(terminate)
  return { id, ended: () => Atomics.load(words, ENDED), terminate }
}

const at = ({ file, line }: StackFrame): string => `${file}:${line}`

/** Where the thread stands, in the fixtures' files. */
function ownPlaces(frames: StackFrame[] | null): string[] {
  assert.ok(frames, 'the thread has stopped')
  return frames.filter(({ file }) => file.startsWith(FOLDER)).map(at)
}

/** A thread that has begun may still be on its way into what it will be stuck in. */
const untilNull = (thread: Thread) => until(async () => (await stackOf(thread.id, 100)) === null, 'null')

const loops: [How, string, string][] = [
  ['loop', 'an endless loop', 'endless loop'],
  ['regex', 'a catastrophic regular expression', 'catastrophic expression'],
  ['allocate', 'a loop that allocates', 'allocating loop'],
  ['microtasks', 'endless microtasks', 'endless microtasks'],
  ['wait', 'Atomics.wait', 'waiting'],
]
for (const [how, what, comment] of loops) {
  test(`${what} is found at its line, and its thread can be terminated afterwards`, async (t) => {
    const thread = await stuckThread(t, how)
    const line = lineOf(STUCK, comment)
    const frames = await until(async () => {
      const startMs = performance.now()
      const stack = await stackOf(thread.id, PATIENCE_MS)
      t.diagnostic(`${(performance.now() - startMs).toFixed(1)} ms: ${stack?.[0] && shownFrame(stack[0])}`)
      // A loop of several lines may stand at its head just as well.
      return [line, line - 1].some((place) => ownPlaces(stack)[0] === `${STUCK}:${place}`) ? stack : undefined
    }, `${STUCK}:${line}`)
    assert.equal(frames.find(({ file }) => file === STUCK)!.function, how)
    await thread.terminate()
  })
}

test('a loop in functions of two files shows both, innermost first', async (t) => {
  const thread = await stuckThread(t, 'nested')
  const frames = (await stackOf(thread.id, PATIENCE_MS))!
  const names = frames.map(({ function: name }) => name)
  const [take, walk, nested, stuck] = frames.slice(names.indexOf('take'))
  const loop = lineOf(NESTED, 'nested loop')
  assert.ok([loop, loop - 1].includes(take!.line), shownFrame(take!))
  assert.deepEqual([take!.file, walk!.file, nested!.file, stuck!.file], [NESTED, NESTED, STUCK, STUCK])
  assert.deepEqual(
    [walk, nested, stuck].map((frame) => frame!.function),
    ['walk', 'nested', 'stuck'],
  )
  assert.match(readFileSync(NESTED, 'utf8').split('\n')[walk!.line - 1]!, /take\(step\)$/)
  assert.equal(nested!.line, lineOf(STUCK, 'outer call'))
  assert.equal(nested!.column, 5)
  for (const { file } of frames) assert.match(file, /^(\/|node:)/)
})

test('a place is found in the source, too, where what the loader keeps was removed meanwhile', async (t) => {
  const thread = await stuckThread(t, 'nested')
  const maps = join(
    dirname(createRequire(import.meta.url).resolve('tsx/package.json')),
    '../.cache/heddle-code/stripped',
  )
  const all = readdirSync(maps).map((name) => ({
    path: join(maps, name),
    text: readFileSync(join(maps, name), 'utf8'),
  }))
  const own = all.filter(({ text }) => text.includes('fixtures/lanes/stack/'))
  assert.ok(own.length >= 2, 'their maps are kept')
  // What is kept of the modules names them further on.
  t.after(() => {
    for (const { path, text } of own) writeFileSync(path, text)
  })
  for (const { path } of own) rmSync(path)
  const frames = (await stackOf(thread.id, PATIENCE_MS))!
  const nested = frames.find(({ function: name }) => name === 'nested')!
  assert.deepEqual([nested.file, nested.line, nested.column], [STUCK, lineOf(STUCK, 'outer call'), 5])
})

test('evaluated text is shown with the place that evaluates it', async (t) => {
  const thread = await stuckThread(t, 'evaluated')
  const frames = (await stackOf(thread.id, PATIENCE_MS))!
  assert.equal(frames[0]!.file, '<anonymous>')
  assert.equal(at(frames[1]!), `${STUCK}:${lineOf(STUCK, 'evaluating call')}`)
})

for (const how of ['process', 'query'] as const) {
  test(`a thread in a native call (${how}) gives null, and goes on afterwards`, async (t) => {
    const thread = await stuckThread(t, how)
    await untilNull(thread)
    assert.equal(thread.ended(), 0, 'it was still in the call')
    await until(() => thread.ended() === 1, 'the thread to go on', 3 * PATIENCE_MS)
    await thread.terminate()
  })
}

test('a thread with nothing to do gives null, and is not stopped when it has', async (t) => {
  const thread = await stuckThread(t, 'idle')
  await untilNull(thread)
  await thread.terminate()
})

test('a thread that is well stops at the next thing that it does, and runs on', async (t) => {
  const thread = await stuckThread(t, 'busy')
  for (let round = 0; round < 5; round++) {
    const frames = await stackOf(thread.id, PATIENCE_MS)
    assert.ok(frames !== null && frames.length > 0)
    const ended = thread.ended()
    await until(() => thread.ended() > ended + 3, 'the thread to run on')
  }
})

test('only the thread that is asked for stops', async (t) => {
  const [stuck, busy] = [await stuckThread(t, 'loop'), await stuckThread(t, 'busy')]
  const before = busy.ended()
  await stackOf(stuck.id, PATIENCE_MS)
  await until(() => busy.ended() > before + 3, 'the other one to run on')
})

test('two stuck threads can be looked at at once, and one more than once', async (t) => {
  const [one, two] = [await stuckThread(t, 'loop'), await stuckThread(t, 'nested')]
  const [first, second, again] = await Promise.all([
    stackOf(one.id, PATIENCE_MS),
    stackOf(two.id, PATIENCE_MS),
    stackOf(one.id, PATIENCE_MS),
  ])
  const line = `${STUCK}:${lineOf(STUCK, 'endless loop')}`
  assert.equal(ownPlaces(first)[0], line)
  assert.equal(ownPlaces(again)[0], line)
  assert.ok(ownPlaces(second).includes(`${STUCK}:${lineOf(STUCK, 'outer call')}`))
  await Promise.all([one.terminate(), two.terminate()])
})

test('threads may be asked while others end', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [...LOADER, `${FOLDER}/ending-threads.ts`])
  assert.equal(stdout, 'all have ended\n')
})

test('a thread that does not exist, or no longer, gives null at once', async (t) => {
  const thread = await stuckThread(t, 'loop')
  const startMs = performance.now()
  assert.equal(await stackOf(123_456, 60_000), null)
  await thread.terminate()
  assert.equal(await stackOf(thread.id, 60_000), null)
  assert.ok(performance.now() - startMs < 30_000)
})

test('a thread that ends meanwhile gives null at once', async (t) => {
  const thread = await stuckThread(t, 'idle')
  const startMs = performance.now()
  const [frames] = await Promise.all([stackOf(thread.id, 60_000), thread.terminate()])
  assert.equal(frames, null)
  assert.ok(performance.now() - startMs < 30_000)
})

test('a debugger that holds the thread already is no hindrance, and keeps it', async (t) => {
  const thread = await stuckThread(t, 'loop')
  const other = new Session()
  other.connect()
  t.after(() => other.disconnect())
  let say = (_: string): void => {}
  await new Promise<void>((resolve) => {
    other.on('NodeWorker.receivedMessageFromWorker', ({ params: { message } }) => {
      if (JSON.parse(message).method === 'Debugger.paused') resolve()
    })
    other.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
      // Not the loader's thread, without which nothing more is imported.
      if (!workerInfo.title.startsWith(`[worker ${thread.id}]`)) return
      say = (method) =>
        other.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id: 1, method }) })
      for (const method of ['Debugger.enable', 'Debugger.pause']) say(method)
    })
    other.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  })
  assert.equal(ownPlaces(await stackOf(thread.id, PATIENCE_MS))[0], `${STUCK}:${lineOf(STUCK, 'endless loop')}`)
  say('Debugger.disable')
  await thread.terminate()
})

test('the runtime: the line of a loop in a lane is found from the primary thread, and the lane can end', async (t) => {
  const heddle = await startHeddle(t, { domains: [`${FOLDER}/runtime`], lanes: 1, env: { LANE_STALL_MS: '1500' } })
  const spun = heddle.json('/spin?ms=1000000')
  const { thread } = await until(() => heddle.logs.find(({ msg }) => msg === 'spins'), 'the loop')
  const { body } = await until(async () => {
    const answer = await heddle.json(`/probe?thread=${thread}`)
    // The loop begins a moment after it was announced.
    return answer.body.shown?.[0]?.includes('turn') ? answer : undefined
  }, 'the stack')
  t.diagnostic(`${body.ms.toFixed(1)} ms\n${body.shown.join('\n')}`)
  assert.equal(at(body.frames[0]), `${SPIN}:${lineOf(SPIN, 'endless loop')}`)
  assert.match(body.shown[0], /^turn \(test\/fixtures\/lanes\/stack\/runtime\/loops\/plugins\/spin\.ts:\d+:\d+\)$/)
  assert.match(body.shown[1], /^spin /)
  assert.ok(body.frames.length <= STACK_MAX_FRAMES)
  assert.equal((await spun).status, 504)
  await until(async () => (await heddle.json('/thread')).status === 200, 'a lane')
  assert.equal(await heddle.stop(), 0)
})

test("the text of an error's stack is read", () => {
  const stack = [
    'Error: at first sight (x:1:2) it is a frame',
    '    at Loop.fail (/srv/app/domains/x/plugins/loop.ts:32:11)',
    '    at Timeout._onTimeout (file:///srv/a%20b/loop.ts?namespace=1:14:29)',
    '    at async Loop.later [as go] (/srv/a (copy)/loop.ts:28:10)',
    '    at async file:///srv/top.ts:3:1',
    '    at /srv/nameless.ts:4:2',
    '    at new Loop (/srv/new.ts:5:3)',
    '    at eval (eval at run (/srv/eval.ts:6:4), <anonymous>:1:7)',
    '    at Array.map (<anonymous>)',
    '    at async Promise.all (index 0)',
    '    at process.processTimers (node:internal/timers:519:7)',
    `    at ${'x ('.repeat(100_000)}`,
  ].join('\n')
  assert.deepEqual(
    framesOfStack(stack).map((frame) => Object.values(frame)),
    [
      ['Loop.fail', '/srv/app/domains/x/plugins/loop.ts', 32, 11],
      ['Timeout._onTimeout', '/srv/a b/loop.ts', 14, 29],
      ['Loop.later [as go]', '/srv/a (copy)/loop.ts', 28, 10],
      ['<anonymous>', '/srv/top.ts', 3, 1],
      ['<anonymous>', '/srv/nameless.ts', 4, 2],
      ['new Loop', '/srv/new.ts', 5, 3],
      ['eval', '<anonymous>', 1, 7],
      ['process.processTimers', 'node:internal/timers', 519, 7],
    ],
  )
  assert.deepEqual(framesOfStack('Error: nothing more'), [])
  assert.equal(framesOfStack('    at f (/x.ts:1:1)\n'.repeat(100)).length, STACK_MAX_FRAMES)
  const [here] = framesOfStack(new Error('x').stack!)
  assert.match(shownFrame(here!), /^\S.* \(test\/rooms\/lanes\/stack-probe\.test\.ts:\d+:\d+\)$/)
})

test('a frame is shown with a path that is short where it can be', () => {
  const frame = { function: 'go', line: 12, column: 5 }
  assert.equal(shownFrame({ ...frame, file: `${process.cwd()}/domains/x.ts` }), 'go (domains/x.ts:12:5)')
  assert.equal(shownFrame({ ...frame, file: '/elsewhere/x.ts' }), 'go (/elsewhere/x.ts:12:5)')
  assert.equal(shownFrame({ ...frame, file: 'node:internal/timers' }), 'go (node:internal/timers:12:5)')
  assert.equal(shownFrame({ ...frame, file: '<anonymous>' }), 'go (<anonymous>:12:5)')
})
