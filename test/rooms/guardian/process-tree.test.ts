import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { endTree, findTree, startOf } from '../../../src/guardian/process-tree.cjs'

const OPTIONS = { skip: process.platform !== 'linux' }
/** No other process has such a mark. */
const MARK = `test/${process.pid}`

async function sleeper(t: TestContext, run: string): Promise<ChildProcess> {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore', env: { ...process.env, HEDDLE_RUN: run } })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child
}

test('a mark is that of what was started with it, and of what has marks of its own below it', OPTIONS, async (t) => {
  const ours = [await sleeper(t, `${MARK}/1`), await sleeper(t, `${MARK}/1/dev/shm/2`)]
  const other = await sleeper(t, `${MARK}/12`)
  const ended = ours.map((child) => once(child, 'exit'))
  assert.deepEqual(findTree({ leaders: new Map(), mark: `${MARK}/1` }).sort(), ours.map(({ pid }) => pid!).sort())
  endTree({ leaders: new Map(), mark: `${MARK}/1` })
  await Promise.all(ended)
  assert.deepEqual(findTree({ leaders: new Map(), mark: MARK }), [other.pid])
})

test('no mark at all is refused: all others begin with it', OPTIONS, async (t) => {
  const { pid } = await sleeper(t, `/${MARK}/none`)
  for (const look of [findTree, endTree])
    assert.throws(() => look({ leaders: new Map(), mark: '' }), /mark .* is empty/)
  assert.deepEqual(findTree({ leaders: new Map(), mark: `/${MARK}/none` }), [pid])
})

test('a process that has got the number of one that was ours is left alone', OPTIONS, async (t) => {
  const { pid } = await sleeper(t, `${MARK}/other`)
  const leaders = new Map([[pid!, startOf(pid!) - 1]])
  endTree({ leaders, mark: `${MARK}/1` })
  // It had ended before anybody looked when it had begun.
  endTree({ leaders: new Map([[pid!, 0]]), mark: null })
  assert.deepEqual(findTree({ leaders: new Map(), mark: `${MARK}/other` }), [pid])
  endTree({ leaders: new Map([[pid!, startOf(pid!)]]), mark: null })
  assert.deepEqual(findTree({ leaders: new Map(), mark: `${MARK}/other` }), [])
})

test(
  'what is left of the session of one that has ended is found, though nobody knows when that began',
  OPTIONS,
  async (t) => {
    const env = { PATH: process.env.PATH }
    const leader = spawn('sh', ['-c', 'sleep 600 & echo $!'], { detached: true, env })
    const [[line]] = await Promise.all([once(leader.stdout!, 'data'), once(leader, 'exit')])
    const left = Number(line)
    t.after(() => {
      try {
        process.kill(left, 'SIGKILL')
      } catch {
        // It has ended, as it should.
      }
    })
    const of = { leaders: new Map([[leader.pid!, 0]]), mark: null }
    assert.deepEqual(findTree(of), [left])
    endTree(of)
    assert.deepEqual(findTree(of), [])
  },
)
