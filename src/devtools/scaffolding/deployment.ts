// `heddle create --deploy`: the shipped files of `deploy/`, changed for an application.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadPart } from '../../core/config/load.ts'
import { readVariable } from '../../core/config/plugin-variables.ts'
import { VARIABLES } from '../../core/config/schema.ts'
import { killAfterMs } from '../../core/config/time-limits.ts'
import { activeTools, toolNameOf } from '../../runtime/kernel/discover.ts'
import { checkKebab } from './names.ts'
import type { Scaffold } from './templates.ts'

/** The files that deploy a clone. Those of an application are made of them: they start it by the package, and have its name. */
const SHIPPED = fileURLToPath(new URL('../../../deploy', import.meta.url))
const PAGE = 'node_modules/heddle/dist/deploy/README.md'
const PROGRAM = 'node_modules/heddle/dist/src/heddle.cjs start'
const FROM_SOURCE = '--require ./src/preload.cjs src/main.ts'

/** What an application runs on, and its settings that other programs have limits for. */
export interface Stage {
  /** Implementations as TOOLS names them. */
  chosen: readonly string[]
  /** The shipped implementations of `db` and `state`; null for one of the application's own. */
  db: string | null
  state: string | null
  /** `package.json` chooses, and goes along with the application. */
  isInManifest: boolean
  usesStreams: boolean
  /** PROCESSES, where it asks for several. */
  processes: number | null
  /** Set by the application, by name. */
  settings: Readonly<Record<string, string>>
}

interface Target extends Stage {
  name: string
  /** For the environment that a file writes. */
  variables: Readonly<Record<string, string>>
}

type Change = (text: string, target: Target) => string

/** Kind → file under `deploy/` of an application, `NAME` for its name → the shipped file, and what becomes of it. */
const KINDS: Record<string, Record<string, readonly [file: string, change: Change]>> = {
  systemd: { 'NAME.service': ['heddle.service', unitOf] },
  pm2: { 'ecosystem.config.cjs': ['ecosystem.config.cjs', processFileOf] },
  compose: {
    'compose.yaml': ['compose.yaml', composeOf],
    'production.env.example': ['elastic.env.example', environmentOf],
    'nginx/NAME.conf': ['nginx/heddle.conf', proxyOf],
    'nginx/system-allow.conf': ['nginx/system-allow.conf', allowedOf],
  },
  k8s: Object.fromEntries(
    readdirSync(join(SHIPPED, 'kubernetes')).map((file) => [`kubernetes/${file}`, [`kubernetes/${file}`, objectsOf]]),
  ),
}

/** What these ways run on, as `--with` names it. */
const SERVERS = ['postgres', 'redis']
/** Kinds that bring PostgreSQL and Redis, or ask for them. */
const isElastic = (kind: string): boolean => kind === 'compose' || kind === 'k8s'
export const usesOf = (kinds: readonly string[]): readonly string[] => (kinds.some(isElastic) ? SERVERS : [])

/** What `heddle create --deploy` takes. */
export const DEPLOYMENTS = Object.keys(KINDS)

/** Settings of an application that the written files must suit. */
const CARRIED = ['SHUTDOWN_TIMEOUT_MS', 'HTTP_HANDLER_TIMEOUT_MS', 'HTTP_BODY_LIMIT'] as const
/**
 * Reads what the application in the current folder runs on: TOOLS, `.env`, `heddle.tools` of package.json, and its folder `tools`.
 * @throws ConfigFaults, CONFIG_INVALID
 */
export function stageHere(): Stage {
  const settings = loadPart(['TOOLS', 'TOOLS_DIR', 'EVENT_BUS_DRIVER', ...CARRIED])
  const { tools = '', toolsDir, eventBusDriver, shutdownTimeoutMs, httpHandlerTimeoutMs, httpBodyLimit } = settings
  const folders = activeTools(toolsDir, tools)
  const shipped = (tool: string): string | null => {
    const path = folders.find((folder) => toolNameOf(folder) === tool)?.path
    return path === undefined || dirname(dirname(path)) !== dirname(toolsDir) ? null : basename(path)
  }
  // Not by the settings, which want the secret of all processes beside it.
  const processes = Number(readVariable('PROCESSES'))
  const values = [shutdownTimeoutMs, httpHandlerTimeoutMs, httpBodyLimit].map(String)
  return {
    chosen: tools.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])),
    db: shipped('db'),
    state: shipped('state'),
    isInManifest: loadPart([]).tools === settings.tools,
    usesStreams: eventBusDriver === 'keyvalue_streams',
    processes: processes > 1 ? processes : null,
    settings: Object.fromEntries(
      CARRIED.flatMap((key, n) => (values[n] === String(VARIABLES[key].default) ? [] : [[key, values[n]!]])),
    ),
  }
}

/** What a new application runs on. @param uses as `--with` names them */
export function stageOf(uses: readonly string[]): Stage {
  const db = uses.includes('postgres') ? 'postgres' : 'sqlite'
  const state = uses.includes('redis') ? 'redis-state' : 'memory-state'
  const chosen = [db, state].filter((implementation) => !ALONE.includes(implementation))
  return { chosen, db, state, isInManifest: false, usesStreams: false, processes: null, settings: {} }
}

/** Implementations that serve one process: of several, each would have its own. */
const ALONE = ['sqlite', 'memory-state']

/** The stage on which a way of deploying runs. What serves one process alone makes room where PostgreSQL and Redis are there. */
function targetOf(kind: string, name: string, stage: Stage): Target {
  const isShared = isElastic(kind)
  const db = isShared && stage.db === 'sqlite' ? 'postgres' : stage.db
  const state = isShared && stage.state === 'memory-state' ? 'redis-state' : stage.state
  const kept = stage.chosen.filter((item) => !isShared || !ALONE.includes(item.split('=').at(-1)!))
  const added = [...(db === stage.db ? [] : [db]), ...(state === stage.state ? [] : [state])]
  const tools = [...kept, ...added].join()
  const variables = {
    ...(tools !== '' && !(stage.isInManifest && added.length === 0) && { TOOLS: tools }),
    // An implementation of the application's own may be one that can keep no events.
    ...(stage.usesStreams ? { EVENT_BUS_DRIVER: 'keyvalue_streams' } : db !== null && { EVENT_BUS_DRIVER: 'database' }),
    ...stage.settings,
  }
  return { ...stage, name, db, state, variables }
}

/** SQLite keeps the events of one process, and what another implementation does nobody knows. */
const hasRoomForMany = ({ db }: Stage): boolean => db === 'postgres'

const NEXT: Record<string, (target: Target) => string> = {
  systemd: () => 'one process under systemd',
  pm2: (target) =>
    hasRoomForMany(target)
      ? `${target.processes ?? 'two'} processes on one port under pm2${target.state === 'redis-state' ? '' : "; `state` is each process's own: TOOLS=postgres,redis-state shares it"}`
      : 'one process under pm2: SQLite keeps the events of one; TOOLS=postgres serves several',
  compose: () => 'PostgreSQL, Redis, two processes and nginx on one machine',
  k8s: () => 'processes behind a Service; PostgreSQL and Redis are yours',
}

/** The files that deploy an application in one of these ways. @param folder absolute */
export function scaffoldDeployment(folder: string, name: string, kinds: readonly string[], stage: Stage): Scaffold {
  checkKebab('An application', name, 'my-app')
  const targets = kinds.map((kind) => ({ kind, target: targetOf(kind, name, stage) }))
  const files = targets.flatMap(({ kind, target }) =>
    Object.entries(KINDS[kind]!).map(([path, [file, change]]) => ({
      path: join(folder, 'deploy', path.replace('NAME', name)),
      text: change(readFileSync(join(SHIPPED, file), 'utf8'), target),
    })),
  )
  const next = targets.map(({ kind, target }) => `# ${NEXT[kind]!(target)}; how to install it: ${PAGE}`)
  return { files, next }
}

/** Replaces what must be there: a shipped file that has changed is no reason to write one that does not fit. */
function replaced(text: string, what: RegExp, by: string): string {
  if (!what.test(text)) throw new Error(`A shipped file of deploy/ has no ${what}`)
  return text.replace(what, by)
}

const seconds = (ms: number): string => String(Math.ceil(ms / 1000))

/** Of a process that an environment of `deploy/` starts. */
const killAfterMsOf = ({ settings }: Stage): number =>
  killAfterMs({
    shutdownDelayMs: DELAY_MS,
    shutdownTimeoutMs: Number(settings.SHUTDOWN_TIMEOUT_MS ?? VARIABLES.SHUTDOWN_TIMEOUT_MS.default),
  })
/** SHUTDOWN_DELAY_MS in each of the files. */
const DELAY_MS = 5000

function unitOf(text: string, { name, variables, ...stage }: Target): string {
  const own = text
    .replace('one heddle process. README.md in this folder', `${name}. ${PAGE}`)
    .replace(/^Description=.*$/m, `Description=${name}`)
    .replace(/^(User|Group|StateDirectory)=heddle$/gm, `$1=${name}`)
    .replaceAll(/\/(opt|etc|var\/lib)\/heddle(?=[./\s])/g, `/$1/${name}`)
    .replace(`/opt/${name}/node_modules/.bin/node ${FROM_SOURCE}`, `/usr/bin/node ${PROGRAM}`)
  const pairs = Object.entries(variables).map((pair) => ` ${pair.join('=')}`)
  const filled = replaced(own, /^Environment=NODE_ENV=.*$/m, `$&${pairs.join('')}`)
  return replaced(filled, /^TimeoutStopSec=.*$/m, `TimeoutStopSec=${seconds(killAfterMsOf(stage))}`)
}

function processFileOf(text: string, target: Target): string {
  const { name, variables } = target
  const own = text
    .replaceAll(/pm2 (start deploy|reload) heddle/g, `pm2 $1 ${name}`)
    .replace("name: 'heddle'", `name: '${name}'`)
    .replace(FROM_SOURCE, PROGRAM)
    .replace("resolve(__dirname, '../node_modules/.bin/node')", 'process.execPath')
    .replace('in the checkout. README.md in this folder', `in the application. ${PAGE}`)
  const many = hasRoomForMany(target)
    ? replaced(
        replaced(own, /INSTANCES \|\| 1/, `INSTANCES || ${target.processes ?? 2}`),
        /\/\*\* Processes on one port\. .*/,
        '/** Processes on one port. SQLite has room for one: on PostgreSQL any number shares the database. */',
      )
    : own
  // SHUTDOWN_TIMEOUT_MS and the like are in `.env`, which the file and the processes read.
  const lines = ['TOOLS', 'EVENT_BUS_DRIVER'].flatMap((key) =>
    variables[key] === undefined ? [] : [`        ${key}: '${variables[key]}',\n`],
  )
  return replaced(many, /^ +EVENT_BUS_DRIVER: .*\n/m, lines.join(''))
}

function composeOf(text: string, target: Target): string {
  const built = text.replace(/build:\n {4}context: \.\.\n.*?\n(?= {2}\w)/s, 'build: ..\n')
  const timed = replaced(built, /( {2}stop_grace_period: )25s/, `$1${seconds(killAfterMsOf(target))}s`)
  return objectsOf(timed.replaceAll('image: heddle:elastic', 'image: heddle'), target)
}

/** What kubectl and a busy node add. */
const KUBERNETES_MARGIN_MS = 5000

function objectsOf(text: string, target: Target): string {
  const { name, variables } = target
  const lines = Object.entries(variables).filter(([key]) => key !== 'EVENT_BUS_DRIVER')
  const chosen = text
    .replaceAll('image: heddle:elastic', 'image: heddle:1')
    .replace(
      /( +)RDB_HOST: postgres\n/,
      (line, indent: string) =>
        lines.map(([key, value]) => `${indent}${key}: ${/^\d/.test(value) ? `"${value}"` : value}\n`).join('') + line,
    )
    .replace(
      /EVENT_BUS_DRIVER: .*/,
      variables.EVENT_BUS_DRIVER === undefined ? '# $&' : `EVENT_BUS_DRIVER: ${variables.EVENT_BUS_DRIVER}`,
    )
    .replace(
      /terminationGracePeriodSeconds: 30/,
      `terminationGracePeriodSeconds: ${seconds(killAfterMsOf(target) + KUBERNETES_MARGIN_MS)}`,
    )
  return renamed(limited(chosen, target), name)
}

/** nginx, or the controller in front of the pods, waits longer and takes more than the application. */
function limited(text: string, { settings }: Target): string {
  const { HTTP_HANDLER_TIMEOUT_MS: handlerMs, HTTP_BODY_LIMIT: bodyBytes } = settings
  const waits = handlerMs === undefined ? null : `${Math.max(35, Math.ceil(Number(handlerMs) / 1000) + 5)}s`
  const takes = bodyBytes === undefined ? null : `${Math.max(2, Math.ceil(Number(bodyBytes) / 1024 ** 2) + 1)}m`
  return text
    .replaceAll(/(proxy[-_](?:send|read)[-_]timeout:? )35s/g, (line, name: string) =>
      waits === null ? line : name + waits,
    )
    .replaceAll(/(client[-_]max[-_]body[-_]size:? )2m/g, (line, name: string) => (takes === null ? line : name + takes))
}

function environmentOf(text: string): string {
  return text
    .replaceAll('elastic.env', 'production.env')
    .replace('; for systemd, put the same lines into /etc/heddle/common.env', '')
}

/** Limits for routes that the example domains have are not for an application. */
function proxyOf(text: string, target: Target): string {
  return limited(allowedOf(text, target), target)
    .replace(/# What a stranger can ask for .*?(?=limit_conn_zone)/s, '')
    .replace(/ {2}# Limits here replace .*?(?= {2}# The shipped deployments)/s, '')
}

function allowedOf(text: string, { name }: Target): string {
  return text
    .replaceAll(/(\/etc\/nginx(?:\/conf\.d)?\/)heddle(?=[./])/g, `$1${name}`)
    .replaceAll('heddle.example.com', `${name}.example.com`)
}

/** The name of the application where heddle's stands, but not in comments, which speak of heddle. */
function renamed(text: string, name: string): string {
  const lines = text.replaceAll('elastic.env', 'production.env').replaceAll(NAME_IN_COMMENTS, name).split('\n')
  return lines
    .map((line) => {
      const comment = /(?:^|\s)#.*$/.exec(line)?.[0] ?? ''
      const code = line.slice(0, line.length - comment.length)
      return (isDatabaseName(code) ? code.replaceAll('heddle', 'app') : code.replaceAll(/\bheddle\b/g, name)) + comment
    })
    .join('\n')
}

const NAME_IN_COMMENTS = /\bheddle(?=-(?:worker|leader|migrate)\b|\.example\.com|\.conf)|(?<=secret generic )heddle\b/g

/** Neither needs quotes that a name with a dash would. */
const isDatabaseName = (code: string): boolean => /(?:_USER|_DATABASE|POSTGRES_DB): heddle$|-U, heddle/.test(code)
