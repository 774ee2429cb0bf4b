import { fork } from 'node:child_process'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'
import { filesBelow, type Unreadable } from './project.ts'
import type { SourceFacts } from './report.ts'

/** What the process is asked. */
export interface SourceOrder {
  domainsDirs: readonly string[]
  toolsDir: string
  unreadable: Unreadable
}
/** What it tells. */
export type SourceReport = { parsing: string } | { facts: SourceFacts } | { failure: string }

const ENTRY = fileURLToPath(new URL('./source-process.ts', import.meta.url))
/** A process that takes longer is killed, milliseconds. The shipped domains take about one second. */
const TIMEOUT_MS = 60_000
/** Files that end the process are left out one after another; with more of them than this, nothing is read. */
const MAX_UNREADABLE = 10
/** Options of this process that are for itself alone. */
const OWN_OPTION = /^--(?:inspect|debug|cpu-prof|heap-prof|prof|watch|test)/

interface Kept {
  fingerprint: string
  facts: Promise<SourceFacts>
}
const kept = new Map<string, Kept>()

/**
 * Reads the sources of all domains in a process of its own, once per change: the parser is native code, and some sources end its process.
 * Such a file has a finding, and the others are read without it.
 * @throws PACKAGE_MISSING; or when no result comes, whatever is left out
 */
export async function sourceFacts(domainsDirs: readonly string[], toolsDir: string): Promise<SourceFacts> {
  needPackages('The lint', OPTIONAL_PACKAGES.lint)
  const fingerprint = await fingerprintOf(domainsDirs)
  const key = JSON.stringify([domainsDirs, toolsDir])
  const known = kept.get(key)
  if (known?.fingerprint === fingerprint) return known.facts
  // A failure is kept, too: nobody can have the same sources parsed again and again.
  const facts = read(domainsDirs, toolsDir)
  kept.set(key, { fingerprint, facts })
  return facts
}

async function read(domainsDirs: readonly string[], toolsDir: string): Promise<SourceFacts> {
  const unreadable: Record<string, string> = {}
  for (;;) {
    const outcome = await run({ domainsDirs, toolsDir, unreadable })
    if ('facts' in outcome) return outcome.facts
    const { file, reason } = outcome
    if (file === null || file in unreadable || Object.keys(unreadable).length === MAX_UNREADABLE) {
      throw new Error(`The sources cannot be read: ${reason}${file === null ? '' : ` at ${file}`}`)
    }
    unreadable[file] = reason
  }
}

type Outcome = { facts: SourceFacts } | { file: string | null; reason: string }

/** One process. @returns what it has found, or the file that it was parsing when it ended */
function run(order: SourceOrder): Promise<Outcome> {
  const execArgv = process.execArgv.filter((option) => !OWN_OPTION.test(option))
  const child = fork(ENTRY, [], { execArgv, stdio: ['ignore', 'ignore', 'ignore', 'ipc'], serialization: 'advanced' })
  let parsing: string | null = null
  let late = false
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, TIMEOUT_MS)
  return new Promise<Outcome>((resolve) => {
    child.on('message', (report: SourceReport) => {
      if ('parsing' in report) parsing = report.parsing
      else resolve('facts' in report ? report : { file: null, reason: report.failure })
    })
    child.on('error', (error) => resolve({ file: null, reason: error.message }))
    child.on('exit', (code, signal) => {
      const ended = late ? `it took more than ${TIMEOUT_MS / 1000} s` : `it ended with ${signal ?? code}`
      resolve({ file: parsing, reason: `the parser ran in a process of its own, and ${ended}` })
    })
    child.send(order, () => {})
  }).finally(() => {
    clearTimeout(timer)
    child.kill('SIGKILL')
  })
}

/** Changes when a file of the domains is added, removed or written. */
async function fingerprintOf(domainsDirs: readonly string[]): Promise<string> {
  const parts: string[] = []
  for (const dir of domainsDirs) {
    // A folder that cannot be read has a finding, or is gone again.
    for (const file of await filesBelow(path.resolve(dir))) {
      const found = await stat(file).catch(() => null)
      if (found !== null) parts.push(`${file} ${found.mtimeMs} ${found.size}`)
    }
  }
  return parts.join('\n')
}
