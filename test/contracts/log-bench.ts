/** Real processes of the runtime for the contract of logs, on each of the logs. */
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../support/folder.ts'
import { type Heddle, type Owner, startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'
import type { LogProcess, LogStore, Note, OpenOptions } from './log-store.ts'

const DOMAINS = fileURLToPath(new URL('./domains', import.meta.url))
const SHARED_LANES = 3
const LANE_ENV = 'LOG_NOTES,LOG_NAME,LOG_WITHOUT'

const OVERLOADED = 'The service is overloaded'
/** A connection that has waited for a while may be closed at the moment in which it is used again. */
const ONE_REQUEST = { connection: 'close' }

/** Where processes keep their events. */
export interface Place {
  env: Record<string, string>
  left(): Promise<number>
  noted(handler: string): Promise<number>
  together(count: number): Promise<void>
  server: LogStore['server']
}

/**
 * @param makePlace makes an empty one; null where there is no such server. It ends with its owner
 * @param domains further ones of its processes
 */
export function benchOn(
  owner: Owner,
  makePlace: (owner: Owner, hasOwnServer: boolean) => Promise<Place | null>,
  domains: readonly string[] = [],
) {
  let shared: Promise<LogStore | null> | null = null
  const storeOf = async (of: Owner, hasOwnServer: boolean, env = {}): Promise<LogStore | null> => {
    const place = await makePlace(of, hasOwnServer)
    return place === null ? null : storeOn(of, { ...place, env: { ...place.env, ...env } }, domains)
  }
  return {
    /** One for all rules that end nothing, with several lanes. */
    shared: () => {
      shared ??= storeOf(owner, false, { LANES: String(SHARED_LANES) })
      return shared
    },
    /** An empty one. @param hasOwnServer the rule takes the server away */
    own: (t: TestContext, hasOwnServer: boolean) => storeOf({ after: (end) => t.after(end) }, hasOwnServer),
  }
}

async function storeOn(owner: Owner, place: Place, domains: readonly string[]): Promise<LogStore> {
  const folder = temporaryFolder(owner)
  const path = join(folder, 'notes')
  let first: Promise<LogProcess> | null = null
  const open = async (name: string, { without = undefined, env = {} }: OpenOptions = {}): Promise<LogProcess> => {
    const own = { LOG_NOTES: path, LOG_NAME: name, LOG_WITHOUT: without ?? '', REPLICA_ID: name, LANE_ENV }
    const base = { SQLITE_PATH: join(folder, 'service.db'), ...place.env, ...own, ...env }
    return processOf(name, await startHeddle(owner, { domains: [DOMAINS, ...domains], lanes: 1, env: base }))
  }
  return {
    open: (name, options) => {
      const opened = open(name, options)
      first ??= opened
      return opened
    },
    process: () => {
      first ??= open('first')
      return first
    },
    together: place.together,
    notes: (tag) => readNotes(path).filter((note) => note.tag === tag),
    letGo: (name) => writeFileSync(`${path}.${name}`, ''),
    left: place.left,
    noted: place.noted,
    server: place.server,
    patienceMs: 0,
  }
}

/** A line that is being written is left for the next time. */
function readNotes(path: string): Note[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  lines.pop()
  return lines.map((line) => JSON.parse(line) as Note)
}

function processOf(name: string, heddle: Heddle): LogProcess {
  const ended = once(heddle.process, 'exit')
  const ask = async (path: string, body: object): Promise<Record<string, unknown>> => {
    // A full queue refuses requests for as long as it is full: whoever is refused asks again.
    const answer = await until(async () => {
      const { status, body: given } = await heddle.post(path, body, ONE_REQUEST)
      return status === 503 && given.error === OVERLOADED ? null : given
    }, `${name} to take ${path}`)
    if (answer?.success === false) throw new Error(`${name} refused: ${answer.error}`)
    return answer
  }
  const ofLetter = async (verb: string, { id }: { id: string }, body: object = {}): Promise<boolean> =>
    (await ask(`/letters/${id}/${verb}`, body)).done === true
  return {
    name,
    get isGone() {
      return heddle.process.exitCode !== null || heddle.process.signalCode !== null
    },
    publish: async (event, work, options = {}) => {
      const named = options.key === undefined ? work : { ...work, key: options.key }
      return (await ask('/publish', { event, work: named, options })).id as string
    },
    burst: async (event, works, delayMs = 0) => {
      const keys = works.map(({ key }) => key)
      return (await ask('/burst', { event, works, keys, delayMs })).ids as string[]
    },
    // While no lane is up nobody lists them.
    letters: () => until(async () => (await heddle.json('/letters', { headers: ONE_REQUEST })).body.letters, 'letters'),
    replay: (letter) => ofLetter('replay', letter),
    edit: (letter, payload) => ofLetter('edit', letter, { payload }),
    remove: (letter) => ofLetter('delete', letter),
    crash: async () => {
      heddle.process.kill('SIGKILL')
      await ended
    },
    get isDraining() {
      return heddle.logs.some(({ msg }) => msg === 'SIGTERM: draining')
    },
    stop: () => heddle.stop(),
    freeze: () => void heddle.process.kill('SIGSTOP'),
    thaw: () => void heddle.process.kill('SIGCONT'),
  }
}
