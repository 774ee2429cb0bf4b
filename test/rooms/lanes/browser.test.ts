/** Holds that of a browser that a plugin has started nothing is left when its lane ends. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { programFor } from '../../support/servers/provide.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { TREES } from './child-trees.ts'
import { lanesOf } from './deadly.ts'

/** Itself, its zygotes, and the handlers of crashes, which begin sessions of their own. */
const BROWSER_PROCESSES = 5
/** What playwright makes for a browser, and removes when that has ended. */
const FOLDER = /^playwright/
const END_MS = 60_000
/** Then no code of the plugin runs any more, which would remove them: a lane that grows on while it leaves is ended, too. */
const CUT_OFF = ['its memory', 'a kill -9 of the service']

const ENDS: Record<string, (heddle: Heddle, runtime: number) => unknown> = {
  'an error that nobody catches': (heddle) => heddle.fetch('/end/throw'),
  'a loop': (heddle) => heddle.fetch('/end/loop'),
  'its memory': (heddle) => heddle.fetch('/end/memory'),
  'a reload': (heddle) => heddle.process.kill('SIGHUP'),
  'the end of the service': (heddle) => heddle.stop(),
  'a kill -9 of the service': (_, runtime) => process.kill(runtime, 'SIGKILL'),
}
for (const [end, make] of Object.entries(ENDS)) {
  test(`nothing is left of a browser after ${end}`, { skip: process.platform !== 'linux' }, async (t) => {
    const CHROMIUM = await programFor(t, 'chromium')
    if (CHROMIUM === null) return
    const TMPDIR = temporaryFolder(t)
    const heddle = await startHeddle(t, {
      domains: [...TREES, fixtureDomains('browser')],
      lanes: 1,
      isGuarded: true,
      env: { CHROMIUM, TMPDIR, LANE_STALL_MS: '1000', LANE_MEMORY_MB: '128' },
    })
    const { runtime } = (await heddle.json('/own?seconds=1')).body.data
    assert.deepEqual((await heddle.json('/page')).body, { text: 'Open' })
    const [browser] = (await lanesOf(heddle))[0]!.child_processes
    assert.deepEqual([browser?.plugin, browser?.handler], ['pages.OpenPage', 'GET /page'])
    assert.ok(browser!.descendants! >= BROWSER_PROCESSES - 2)
    const processes = processesIn(TMPDIR, browser!.pid)
    assert.ok(processes.length >= BROWSER_PROCESSES, processes.join(', '))
    t.after(() => {
      for (const each of processes.filter(isRunning)) process.kill(Number.parseInt(each, 10), 'SIGKILL')
    })
    void Promise.resolve(make(heddle, runtime)).catch(() => {})
    await until(() => !processes.some(isRunning), 'all have ended', END_MS).catch((error: Error) => {
      assert.deepEqual(processes.filter(isRunning), [], error.message)
    })
    if (CUT_OFF.includes(end)) return
    await until(() => !readdirSync(TMPDIR).some((name) => FOLDER.test(name)), 'its folders are gone', END_MS)
  })
}

/** Those below a process, and those of Chromium that were started with this folder: each with its number, its beginning and its name. */
function processesIn(folder: string, root: number): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const isIn = (pid: string): boolean => textOf(`/proc/${pid}/environ`).includes(`TMPDIR=${folder}\0`)
  const found = new Set(pids.filter((pid) => Number(pid) === root || (isIn(pid) && /chrom/.test(known(pid) ?? ''))))
  for (let size = 0; size !== found.size; ) {
    size = found.size
    for (const pid of pids) if (found.has(statOf(pid)[1]!)) found.add(pid)
  }
  return [...found].flatMap((pid) => known(pid) ?? [])
}

const isRunning = (process: string): boolean => known(String(Number.parseInt(process, 10))) === process

/** Null for one that has ended. */
function known(pid: string): string | null {
  const stat = statOf(pid)
  return stat.length > 1 && stat[0] !== 'Z' ? `${pid} ${stat[19]} ${textOf(`/proc/${pid}/comm`).trim()}` : null
}

const statOf = (pid: string): string[] => textOf(`/proc/${pid}/stat`).split(') ').at(-1)!.split(' ')

function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
