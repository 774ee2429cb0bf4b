// From the environment to settings, with all faults at once: the one reader of `process.env`.
import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { readText } from '../../preload/text-file.cjs'
import { messageOf } from '../errors/description.ts'
import {
  checkTls,
  checkTokens,
  isLoopback,
  isSystemClosed,
  keepFilesApart,
  setApart,
  warnOfClearText,
} from './checks.ts'
import type { Row } from './kinds.ts'
import { likelyTypos } from './nearest-name.ts'
import { serveVariables } from './plugin-variables.ts'
import { type Settings, settingKey, VARIABLES, variablesOfOtherTools } from './schema.ts'
import { chosenTools, FILE_SUFFIX, readConnectionUrls, readSecretFiles, urlFor, withShippedDomains } from './sources.ts'

/** Exit status of a process whose environment is not valid (EX_CONFIG of sysexits.h). */
export const EXIT_CONFIG = 78
/** `EX_TEMPFAIL` of sysexits.h: this process has to end, and the next start may succeed. */
export const EXIT_AGAIN = 75

/**
 * The value of `UWS_HTTP_MAX_HEADERS_SIZE` when it is unset, in bytes. The HTTP library reads it while it loads.
 * It is far above the runtime's own limit of 16 KiB, so that the runtime itself answers 431.
 */
const UWS_HTTP_MAX_HEADERS_BYTES = 98_304

const ROWS = Object.entries(VARIABLES) as [string, Row<unknown>][]
const SECRET_NAMES = new Set(ROWS.filter(([, row]) => row.secret).map(([name]) => name))

/** Who starts the runtime gives it those of `.env`: the guardian, and `heddle dev`. */
const LATE_NODE_OPTIONS =
  'NODE_OPTIONS stands in .env, which Node does not read: agents reach the lanes, and not this thread. Set it where the process is started'

type Environment = Readonly<Record<string, string | undefined>>

/** All faults of the environment, one line each: main prints the message and exits with `EXIT_CONFIG`. */
export class ConfigFaults extends Error {
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`The environment is not valid:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.name = 'ConfigFaults'
    this.faults = faults
  }
}

export interface LoadedSettings {
  settings: Settings
  /** To be logged as soon as there is a log. */
  warnings: string[]
}

/**
 * Parses the environment. Without an argument it reads `process.env`, after adding `.env` of the current folder
 * (variables that are already set win).
 * @param isDevelopment `npm run dev`: fewer lanes by default
 * @param bootTool the one tool that is to be booted: variables of other tools have their defaults, and no faults
 * @throws ConfigFaults with every fault
 */
export function loadSettings(
  env: Environment = process.env,
  isDevelopment = false,
  bootTool: string | null = null,
): LoadedSettings {
  const faults: string[] = []
  const nodeOptions = env.NODE_OPTIONS
  if (env === process.env) addDotEnv(faults)
  if (bootTool !== null) env = without(env, variablesOfOtherTools(bootTool))
  const secretFiles = [...SECRET_NAMES].map((name) => name + FILE_SUFFIX)
  const warnings = likelyTypos(env, [...Object.keys(VARIABLES), ...secretFiles])
  if (nodeOptions === undefined && !isUnset(env.NODE_OPTIONS)) warnings.push(LATE_NODE_OPTIONS)
  const secrets = readSecretFiles(env, SECRET_NAMES, faults)
  const given = (name: string): string | undefined => secrets[name] ?? env[name]
  const fromUrls = readConnectionUrls(given, { faults, warnings })

  const isAlone = isDevelopment || bootTool !== null
  const settings: Record<string, unknown> = {}
  for (const [name, row] of ROWS) {
    const raw = isAlone && name === 'PROCESSES' ? undefined : given(name)
    const url = isUnset(raw) && fromUrls[name] !== undefined
    const parsed = readRow(row, url ? fromUrls[name] : raw, settings, isDevelopment)
    if (parsed !== REFUSED) settings[settingKey(name)] = parsed
    else {
      const got = row.secret || url ? 'something else' : JSON.stringify(raw)
      faults.push(`${name}${url ? ` by ${urlFor(name)}` : ''}: expected ${row.wanted}, got ${got}`)
    }
  }
  settings.tools ??= chosenTools(faults)
  if (Array.isArray(settings.domainsDir) && settings.systemDomain !== false)
    settings.domainsDir = withShippedDomains(settings.domainsDir)
  checkTogether(settings as Settings, faults)
  keepFilesApart(settings as Settings, faults)
  setApart(settings as Settings, !isUnset(given('REPLICA_ID')), faults)
  checkTokens(settings as Settings, faults)
  checkTls(settings as Settings, faults)
  warnOfOpenAddresses(settings as Settings, warnings)
  const unseen = (settings as Settings).laneEnv?.filter((name) => SECRET_NAMES.has(name)) ?? []
  if (unseen.length > 0)
    warnings.push(
      `LANE_ENV names ${unseen.join(', ')}, secrets of the runtime, which no lane sees: set variables of other names for plugins`,
    )
  if (FAULTY_NODE.test(process.versions.node)) warnings.push(FAULTY_NODE_WARNING)
  if (isUnset(env.KV_TLS) && settings.kvTls === 'off') warnOfClearText(settings as Settings, warnings)
  const needsSecret = bootTool === null || bootTool === 'auth'
  const isGiven = (name: string): boolean => !isUnset(given(name)) || !isUnset(env[name + FILE_SUFFIX])
  if (needsSecret && !isGiven('AUTH_SECRET_KEY') && !isGiven('AUTH_SECRET_KEYS'))
    settings.authSecretKey = replaceSecret(settings as Settings, faults, warnings)

  if (faults.length > 0) throw new ConfigFaults(faults)
  return { settings: freezeSettings(settings as Settings), warnings }
}

/**
 * Loads settings from some variables alone, also of `.env`: whatever else the environment lacks or has wrong does not matter to a tool.
 * @throws ConfigFaults for a fault of these
 */
export function loadPart(names: readonly string[]): Settings {
  const faults: string[] = []
  addDotEnv(faults)
  if (faults.length > 0) throw new ConfigFaults(faults)
  return loadSettings(Object.fromEntries(names.map((name) => [name, process.env[name]]))).settings
}

/** Deep-freezes settings. A lane gets its own copy in a message, which is not frozen. */
function freezeSettings(settings: Settings): Settings {
  for (const value of Object.values(settings)) Object.freeze(value)
  return Object.freeze(settings)
}

serveVariables(
  (name) => (SECRET_NAMES.has(name.toUpperCase()) ? undefined : process.env[name]),
  (name) => SECRET_NAMES.has(name.toUpperCase()) && process.env[name] !== undefined,
)

/** Every variable of this process but the runtime's secrets. */
export function publicVariables(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => !SECRET_NAMES.has(name.toUpperCase()))
  return Object.fromEntries(entries) as Record<string, string>
}

/** What Node, its libraries and the system read: a lane's `process.env` has these, and what `LANE_ENV` adds. */
const KEPT = `
  PATH HOME USER LOGNAME SHELL PWD HOSTNAME LANG LANGUAGE LC_* TZ TMPDIR TEMP TMP TERM COLORTERM NO_COLOR FORCE_COLOR
  NODE_ENV NODE_OPTIONS NODE_PATH NODE_DEBUG NODE_NO_WARNINGS NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED
  NODE_V8_COVERAGE NODE_APP_INSTANCE UV_THREADPOOL_SIZE TSX_* ESBUILD_* SSL_CERT_FILE SSL_CERT_DIR
  HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy
  SystemRoot ComSpec PATHEXT USERPROFILE APPDATA LOCALAPPDATA
`

/**
 * The environment of a lane. All plugins of a thread share one `process.env`, so it has what no plugin needs to hide from another: a plugin
 * gets its own variables from the tool `config`.
 * @param added names beside the kept ones; a `*` at the end stands for any rest
 */
export function laneEnvironment(added: readonly string[]): Record<string, string> {
  const patterns = [...KEPT.trim().split(/\s+/), ...added]
  const isKept = (name: string): boolean =>
    patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
  return Object.fromEntries(Object.entries(publicVariables()).filter(([name]) => isKept(name)))
}

/** Names of the runtime's secrets that this process has, and of their files. */
export function secretNames(): string[] {
  return Object.keys(process.env).filter((name) => SECRET_NAMES.has(name.toUpperCase().replace(/_FILE$/, '')))
}

/** A copy of this process's environment, for a child process, and for loading settings without `.env`. */
export function copyEnvironment(): Environment {
  return { ...process.env }
}

/**
 * The folder that the guardian has made for this process's flight record; null for a process that no guardian has started.
 * Taken once: no child of this process is to take itself for guarded.
 */
export function takeFlightDir(): string | null {
  const folder = taken('HEDDLE_FLIGHT_DIR')
  return folder === undefined || process.send === undefined ? null : folder
}

/** True for a process that is to end with its parent: that of `heddle dev`, and what npm runs for `npm run dev`. Taken once, as above. */
export const takeFollowing = (): boolean => taken('HEDDLE_FOLLOWS_PARENT') === 'true' || isStartedByNpm()

/** True for a process that shares its port with those that its guardian has started before. Taken once, as above. */
export const takePortJoining = (): boolean => taken('HEDDLE_JOINS_PORT') === 'true'

function taken(name: string): string | undefined {
  const value = process.env[name]
  delete process.env[name]
  return value
}

/** Sets variables that libraries read while they load. Call it before anything imports the HTTP library. */
export function prepareEnvironment(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(UWS_HTTP_MAX_HEADERS_BYTES)
}

/** A copy of the environment without these variables, and without the files of those that are secrets. */
function without(env: Environment, names: readonly string[]): Environment {
  const dropped = new Set(names.flatMap((name) => [name, name + FILE_SUFFIX]))
  return Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.has(name)))
}

/** For a text that is none of the values of its variable. */
const REFUSED = Symbol('refused')

function readRow(
  row: Row<unknown>,
  raw: string | undefined,
  above: Record<string, unknown>,
  isDevelopment: boolean,
): unknown {
  if (!isUnset(raw)) return row.read(row.secret ? raw : raw.trim()) ?? REFUSED
  if (typeof row.default === 'function') return row.default(above, isDevelopment)
  return typeof row.default === 'string' ? row.read(row.default) : row.default
}

function isUnset(raw: string | undefined): raw is undefined | '' {
  return raw === undefined || raw.trim() === ''
}

function addDotEnv(faults: string[]): void {
  const file = resolve('.env')
  if (!existsSync(file)) return
  try {
    // A pipe would block until somebody writes, and a device has no end.
    if (!statSync(file).isFile()) throw new Error('it is not a file')
    for (const [name, value] of Object.entries(parseEnv(readText(file)))) process.env[name] ??= value
  } catch (error) {
    faults.push(`.env: cannot be read: ${messageOf(error)}`)
  }
}

/** Checks settings against each other. A setting that has a fault is missing here, so comparing it is false. */
function checkTogether(settings: Settings, faults: string[]): void {
  if (settings.rdbMinPool > settings.rdbMaxPool) {
    faults.push(`RDB_MIN_POOL: expected at most RDB_MAX_POOL (${settings.rdbMaxPool}), got "${settings.rdbMinPool}"`)
  }
  // Every page would act with the cookies of whoever looks at it.
  if (settings.httpCorsCredentials && settings.httpCorsOrigins?.includes('*')) {
    faults.push('HTTP_CORS_CREDENTIALS: expected HTTP_CORS_ORIGINS to name its origins, got "*"')
  }
}

/** One release, and no other: the ones before and after it do not have the fault. */
const FAULTY_NODE = /^24\.19\./
const FAULTY_NODE_WARNING =
  'Node 24.19 keeps the handle of each socket that a plugin has read with `for await`, so that the process grows: use a later Node 24'

/** A network that is larger than any that is somebody's own: 10.0.0.0/8, fc00::/7. */
function isWide(network: string): boolean {
  const [address, prefix] = network.split('/') as [string, string | undefined]
  return prefix !== undefined && Number(prefix) < (address.includes(':') ? 7 : 8)
}

/** Says what everybody may reach who reaches the address. */
function warnOfOpenAddresses(settings: Settings, warnings: string[]): void {
  const { httpHost, httpAllowedHosts, httpTrustedProxies, systemToken, systemReadToken, systemPort, systemHost } =
    settings
  const hasToken = systemToken !== undefined || systemReadToken !== undefined
  if (systemPort !== undefined && !hasToken && systemHost !== undefined && !isLoopback(systemHost))
    warnings.push(
      `SYSTEM_TOKEN is not set: everybody who reaches SYSTEM_HOST (${systemHost}) can read and change /system`,
    )
  const wide = httpTrustedProxies?.find(isWide)
  if (wide !== undefined)
    warnings.push(
      `HTTP_TRUSTED_PROXIES has ${wide}: everybody in it can say in X-Forwarded-For who he is; list the proxies alone`,
    )
  const isClosed = isSystemClosed(settings)
  if (isClosed)
    warnings.push(
      'SYSTEM_TOKEN and SYSTEM_PORT are not set: /system is closed, but for its health, because HTTP_TRUSTED_PROXIES or HTTP_ALLOWED_HOSTS tells of a proxy; set one of them',
    )
  if (httpHost === undefined || isLoopback(httpHost)) return
  if (systemPort === undefined && !hasToken && !isClosed)
    warnings.push(
      `SYSTEM_TOKEN and SYSTEM_PORT are not set: EVERYBODY who reaches HTTP_HOST (${httpHost}) can read /system, replay and delete dead letters and read the log; set one of them`,
    )
  if (httpAllowedHosts?.length === 0)
    warnings.push(
      `HTTP_ALLOWED_HOSTS is not set, and HTTP_HOST (${httpHost}) is no loopback address: requests for any host name are served; list the names of this service`,
    )
}

function replaceSecret(settings: Settings, faults: string[], warnings: string[]): string | undefined {
  if (settings.processes > 1) {
    faults.push(
      `AUTH_SECRET_KEY: expected at least 32 characters, the same for all ${settings.processes} PROCESSES, got nothing`,
    )
    return undefined
  }
  if (settings.httpHost !== undefined && !isLoopback(settings.httpHost)) {
    faults.push(
      `AUTH_SECRET_KEY: expected at least 32 characters because HTTP_HOST (${settings.httpHost}) is not a loopback address, got nothing`,
    )
    return undefined
  }
  if (settings.httpReusePort) {
    faults.push(
      'AUTH_SECRET_KEY: expected at least 32 characters, the same for all processes on the port, because HTTP_REUSE_PORT is true, got nothing',
    )
    return undefined
  }
  warnings.push('AUTH_SECRET_KEY is not set: tokens are signed with a random key and end with this process')
  return randomBytes(32).toString('base64url')
}

/** True when npm has started this process, for `npm start` or `npm run dev`. */
export const isStartedByNpm = (): boolean =>
  process.env.npm_command !== undefined && ['start', 'dev'].includes(process.env.npm_lifecycle_event ?? '')

/** The version of the Node that started npm, which in the repository is not the one that npm runs its scripts on; without npm of this one. */
export const outerNode = (): string =>
  /\bnode\/v(\S+)/.exec(process.env.npm_config_user_agent ?? '')?.[1] ?? process.versions.node
