// An application as `create --deploy` finds it, with the built package and without npm, and a load of orders whose events must not be lost.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { type Agent, request as requestOverTls } from 'node:https'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { filled } from '../../../src/devtools/scaffolding/templates.ts'
import { placeDist } from '../../support/built-package.ts'
import { temporaryFolder } from '../../support/folder.ts'
import type { Query } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
export const NAME = 'parcel-box'
export const PROGRAM = 'node_modules/heddle/dist/src/heddle.cjs'

/** Makes the application, and the files that deploy it. @param manifest for its package.json @returns its folder */
export async function deployedApplication(
  t: Pick<TestContext, 'after'>,
  kinds: readonly string[],
  { manifest = {}, dotEnv = '' }: { manifest?: object; dotEnv?: string } = {},
): Promise<string> {
  const folder = join(temporaryFolder(t), NAME)
  const packages = join(folder, 'node_modules')
  mkdirSync(join(packages, 'heddle'), { recursive: true })
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (!name.startsWith('.')) symlinkSync(join(ROOT, 'node_modules', name), join(packages, name))
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  writeFileSync(join(packages, 'heddle/package.json'), JSON.stringify({ ...own, type: 'commonjs' }))
  await placeDist(join(packages, 'heddle/dist'))
  const whole = { name: NAME, type: 'module', dependencies: { heddle: '0.1.0' }, ...manifest }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(whole))
  writeFileSync(join(folder, '.env'), dotEnv)
  const domains = join(folder, 'domains')
  cpSync(join(ROOT, 'test/fixtures/logged'), domains, { recursive: true })
  for (const file of ['take-orders.ts', 'park-orders.ts']) {
    const path = join(domains, 'shop/plugins', file)
    writeFileSync(path, readFileSync(path, 'utf8').replace("'#heddle'", "'heddle'"))
  }
  writeFileSync(join(folder, 'Dockerfile'), filled('application/Dockerfile', { name: NAME }))
  const args = [PROGRAM, 'create', ...kinds.flatMap((kind) => ['--deploy', kind])]
  execFileSync(process.execPath, args, { cwd: folder, env: { PATH: process.env.PATH } })
  return folder
}

const CLIENTS = 4
const EVERY_MS = 25
const PROXIED_MS = 120

export interface Orders {
  /** Ids that were answered with 201. */
  readonly taken: readonly string[]
  /** A line for each order that was not. */
  readonly refused: readonly string[]
  stop(): Promise<void>
}

/** How orders reach a proxy. */
interface Proxy {
  agent: Agent
  host: string
}

/** Clients that order again and again, each order on a connection of its own unless a proxy keeps it, and repeat nothing. */
export function startOrders(port: number, proxy?: Proxy): Orders {
  const taken: string[] = []
  const refused: string[] = []
  let isStopped = false
  const runClient = async (client: number): Promise<void> => {
    for (let n = 0; !isStopped; n++) {
      const id = `${client}-${n}`
      const outcome = await order(port, id, proxy).catch((error: NodeJS.ErrnoException) => error.code ?? error.message)
      if (outcome === 201) taken.push(id)
      else refused.push(`${id}: ${outcome}`)
      // Below what the proxy allows one address.
      await setTimeout(proxy === undefined ? EVERY_MS : PROXIED_MS)
    }
  }
  const running = Array.from({ length: CLIENTS }, (_, client) => runClient(client))
  return {
    taken,
    refused,
    stop: async () => {
      isStopped = true
      await Promise.all(running)
    },
  }
}

function order(port: number, id: string, proxy: Proxy | undefined): Promise<number | string> {
  const headers = { 'content-type': 'application/json', ...(proxy && { host: proxy.host }) }
  const options = { host: '127.0.0.1', port, path: '/orders', method: 'POST', headers }
  return new Promise((resolve, reject) => {
    const sent = proxy ? requestOverTls({ ...options, agent: proxy.agent }) : request({ ...options, agent: false })
    sent.on('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => resolve(answer.statusCode === 201 ? 201 : `${answer.statusCode} ${text}`))
      answer.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ id }))
  })
}

/** Steady: so many further orders are taken. */
export async function moreOrders({ taken }: Orders, count = 40): Promise<void> {
  const before = taken.length
  await until(() => taken.length >= before + count, 'further orders', 60_000)
}

/** What was acknowledged is stored, and its event has reached both subscribers. */
export async function allHandled(orders: Orders, rows: Query): Promise<void> {
  const stored = async (sql: string) => new Set((await rows<{ id: string }>(sql)).map(({ id }) => id))
  const lost = (have: ReadonlySet<string>, ids: readonly string[]) => ids.filter((id) => !have.has(id))
  assert.deepEqual(lost(await stored('SELECT id FROM orders'), orders.taken), [])
  const wanted = orders.taken.flatMap((id) => [id, `${id} after`])
  await until(
    async () => lost(await stored('SELECT order_id AS id FROM handled'), wanted).length === 0,
    'every event is handled',
    60_000,
  )
}
