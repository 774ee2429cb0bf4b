/** Holds that all that a lane has started ends with it, however it ends, and nothing else does. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { startTrees, TREES, unheardOf } from './child-trees.ts'
import { lanesOf } from './deadly.ts'

const OPTIONS = { skip: process.platform !== 'linux' }
const END_MS = 60_000
const start = (t: Parameters<typeof startHeddle>[0], isGuarded = false): Promise<Heddle> =>
  startHeddle(t, { domains: TREES, lanes: 1, isGuarded, env: { LANE_STALL_MS: '1000', LANE_MEMORY_MB: '64' } })
const ask = (heddle: Heddle, way: string): void => void heddle.fetch(`/end/${way}`).catch(() => {})

const ENDS: Record<string, (heddle: Heddle) => unknown> = {
  'an error that nobody catches': (heddle) => ask(heddle, 'throw'),
  'a loop': (heddle) => ask(heddle, 'loop'),
  'its memory': (heddle) => ask(heddle, 'memory'),
  'process.exit': (heddle) => ask(heddle, 'exit'),
  'a call that does not return': (heddle) => ask(heddle, 'wait'),
  'a reload': (heddle) => heddle.process.kill('SIGHUP'),
}
/** Of a thread that is ended from outside nobody is left who would hear of the end of its processes. */
const isCutOff = (end: string): boolean => ['its memory', 'a call that does not return'].includes(end)

for (const [end, make] of Object.entries(ENDS)) {
  test(`what a lane has started ends with ${end}, and what the primary has does not`, OPTIONS, async (t) => {
    const heddle = await start(t)
    const trees = await startTrees(t, heddle)
    make(heddle)
    await until(() => trees.left().length === 0, `nothing is left of ${end}`, END_MS).catch((error: Error) => {
      assert.deepEqual(trees.left(), [], error.message)
    })
    assert.ok(trees.hasOwn())
    await until(async () => (await lanesOf(heddle)).every((each) => each.child_processes.length === 0), 'none is shown')
    if (!isCutOff(end)) assert.deepEqual(unheardOf(heddle.process.pid!), [])
  })
}

const ENDS_OF_PROCESS: Record<string, (heddle: Heddle) => unknown> = {
  'a stop': (heddle) => heddle.process.kill('SIGTERM'),
  'a second signal': async (heddle) => {
    heddle.process.kill('SIGTERM')
    await until(() => heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining'), 'the first')
    heddle.process.kill('SIGTERM')
  },
  'process.exit in the primary': (heddle) => heddle.fetch('/own/exit').catch(() => {}),
}
for (const [end, make] of Object.entries(ENDS_OF_PROCESS)) {
  test(`what lanes have started ends with ${end}, without a guardian`, OPTIONS, async (t) => {
    const heddle = await start(t)
    const trees = await startTrees(t, heddle)
    const exited = once(heddle.process, 'exit')
    void make(heddle)
    await exited
    assert.deepEqual(trees.left(), [])
  })
}

test(
  'the guardian ends what the lanes of a killed runtime have started, before it starts the next',
  OPTIONS,
  async (t) => {
    const heddle = await start(t, true)
    const trees = await startTrees(t, heddle)
    const served = () => heddle.logs.filter(({ msg }) => msg.startsWith('Serving on ')).length
    process.kill(trees.runtime, 'SIGKILL')
    await until(() => served() === 2, 'the next one', END_MS)
    assert.deepEqual([trees.left(), trees.hasOwn()], [[], false])
  },
)

test('a process is asked to end, after onStop, and has time for it', OPTIONS, async (t) => {
  const heddle = await start(t)
  const file = join(heddle.directory, 'polite')
  await heddle.fetch(`/polite?file=${file}`)
  const said = (): Promise<string> => readFile(file, 'utf8').catch(() => '')
  await until(async () => (await said()) === 'there\n', 'it is there')
  heddle.process.kill('SIGHUP')
  await until(async () => (await said()) === 'there\nstopped\nasked\n', 'it was asked')
})

test('what lanes have started ends when the guardian is killed: the service drains then', OPTIONS, async (t) => {
  const heddle = await start(t, true)
  const trees = await startTrees(t, heddle)
  heddle.process.kill('SIGKILL')
  await until(() => trees.left().length === 0, 'nothing is left', END_MS)
})
