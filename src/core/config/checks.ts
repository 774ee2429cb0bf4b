// Settings against each other: TLS, tokens, several processes, files.

import { X509Certificate } from 'node:crypto'
import { readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf, readable } from '../errors/description.ts'
import type { Settings } from './schema.ts'

/** True for an address or name that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}

type Place = Pick<Settings, 'processes' | 'nodeAppInstance'>

/** The number of this process among those that its guardian runs (PROCESSES); null when it is the only one. */
export function processNumber({ processes, nodeAppInstance = 0 }: Place): number | null {
  return processes > 1 ? nodeAppInstance % processes : null
}

/**
 * Gives one of several processes what it cannot share with the others: its name, the port of `/system`, and the jobs, which run in the first.
 * @param isNamed REPLICA_ID is given
 */
export function setApart(settings: Record<string, unknown> & Settings, isNamed: boolean, faults: string[]): void {
  const number = processNumber(settings)
  const { processes, nodeAppInstance: instance = 0, httpPort, systemPort } = settings
  if (number === null) {
    // Another supervisor gives all of them one environment, too.
    if (isNamed && instance > 0) Object.assign(settings, { replicaId: `${settings.replicaId}:${instance}` })
    return
  }
  const own: Partial<{ -readonly [Key in keyof Settings]: Settings[Key] }> = {}
  if (httpPort === 0) faults.push(`HTTP_PORT: expected one that ${processes} PROCESSES can share, got "0"`)
  if (isNamed) own.replicaId = `${settings.replicaId}:${instance}`
  if (number > 0) own.schedulerEnabled = false
  // 0 is any free port, for each.
  if (systemPort !== undefined && systemPort > 0) {
    own.systemPort = systemPort + instance
    const last = systemPort + processes - 1
    if (httpPort >= systemPort && httpPort <= last)
      faults.push(
        `SYSTEM_PORT: expected one below or above HTTP_PORT (${httpPort}), because each of ${processes} PROCESSES has a port from ${systemPort} to ${last}`,
      )
    if (last > 65_535) faults.push(`SYSTEM_PORT: expected at most ${65_536 - processes} with ${processes} PROCESSES`)
  }
  Object.assign(settings, own)
}

/** A setting that has a fault of its own is missing. */
type Given = Partial<Settings>

/** Checks that a file of authorities can be read, and that it is used. */
export function checkTls({ rdbTls, rdbCaFile, kvTls, kvCaFile }: Given, faults: string[]): void {
  checkCaFile('RDB', rdbTls, rdbCaFile, faults)
  checkCaFile('KV', kvTls, kvCaFile, faults)
}

/** For `KV_TLS` unset. The store gets its password as text, whatever it asks for: only TLS hides it. */
export function warnOfClearText({ kvHost, kvPassword }: Given, warnings: string[]): void {
  if (!kvPassword || kvHost === undefined || isLoopback(kvHost)) return
  warnings.push(
    `KV_TLS is not set: KV_PASSWORD and all data go to KV_HOST (${kvHost}) as text; set it to verify, or to off where nobody else reads that network`,
  )
}

function checkCaFile(prefix: string, mode: string | undefined, file: string | undefined, faults: string[]): void {
  if (file === undefined || mode === undefined) return
  const name = `${prefix}_CA_FILE`
  // Whoever sets it believes that certificates are checked.
  if (mode !== 'verify') {
    faults.push(`${name}: expected nothing unless ${prefix}_TLS is verify, got ${JSON.stringify(file)}`)
    return
  }
  try {
    new X509Certificate(readFileSync(file))
  } catch (error) {
    faults.push(`${name}: expected a PEM file of certificates, got ${JSON.stringify(file)} (${messageOf(error)})`)
  }
}

/** The entries of AUTH_SECRET_KEYS: each an id and a secret. */
export function namedSecrets(authSecretKeys = ''): [kid: string, secret: string][] {
  const entries = authSecretKeys.split(',').filter((entry) => entry.includes(':'))
  return entries.map((entry) => {
    const [kid, ...secret] = entry.trim().split(':') as [string, ...string[]]
    return [kid, secret.join(':')]
  })
}

/** Checks the settings of tokens against each other. A setting that has a fault of its own is missing. */
export function checkTokens(settings: Partial<Settings>, faults: string[]): void {
  const { authSecretKeys, authJwksUrl, authJwksIssuer, authAudience } = settings
  const kids = namedSecrets(authSecretKeys).map(([kid]) => kid)
  const twice = kids.find((kid, index) => kids.indexOf(kid) !== index)
  if (twice !== undefined)
    faults.push(`AUTH_SECRET_KEYS: expected each key id once, got ${JSON.stringify(twice)} twice`)
  // The provider signs for other services with the same keys: its tokens for them must not open this one.
  if (authJwksUrl === undefined) return
  if (authJwksIssuer === undefined) faults.push('AUTH_JWKS_ISSUER: expected the issuer of AUTH_JWKS_URL, got nothing')
  if (authAudience === undefined)
    faults.push('AUTH_AUDIENCE: expected a name because AUTH_JWKS_URL is set, got nothing')
}

type Named = Pick<
  Settings,
  'systemToken' | 'systemReadToken' | 'systemPort' | 'nodeEnv' | 'httpTrustedProxies' | 'httpAllowedHosts'
>

/** In production behind a proxy, which brings the public to whatever address it is, nobody has said who may see `/system`. */
export function isSystemClosed(settings: Named): boolean {
  const { systemToken, systemReadToken, systemPort, nodeEnv, httpTrustedProxies, httpAllowedHosts } = settings
  const isOpen = systemToken === undefined && systemReadToken === undefined && systemPort === undefined
  const isBehindProxy = httpTrustedProxies?.length > 0 || httpAllowedHosts?.some((host) => !isLoopback(host))
  return isOpen && nodeEnv === 'production' && isBehindProxy
}

/** What SQLite and the tool `db` keep beside a database. */
const BESIDE = ['', '-wal', '-shm', '-journal', '-claim', '-alone', '-reserve']
/** Links that lead to one another, before they are taken for a circle. */
const LINKS_MAX = 40

/**
 * The history is written without a sync, and anew for another version of its tables: none of its files may be one of the database.
 * @param faults gets a line when one is
 */
export function keepFilesApart(
  { historyEnabled, historyPath, sqlitePath }: Pick<Settings, 'historyEnabled' | 'historyPath' | 'sqlitePath'>,
  faults: string[],
): void {
  // A setting that has a fault is missing here.
  if (!historyEnabled || historyPath === undefined || sqlitePath === undefined) return
  const ofDatabase = new Set(BESIDE.flatMap((ending) => namesOf(sqlitePath + ending)))
  const shared = BESIDE.flatMap((ending) => namesOf(historyPath + ending)).some((name) => ofDatabase.has(name))
  if (shared)
    faults.push(
      `HISTORY_PATH: expected another file than SQLITE_PATH (${sqlitePath}), got ${JSON.stringify(historyPath)}, which is the same or beside it; set HISTORY_PATH`,
    )
}

/** What a file is known by: its place, whatever links lead there, and, once it is there, its device and inode. */
function namesOf(path: string): string[] {
  const place = placeOf(path, LINKS_MAX)
  const found = readable(() => statSync(path, { bigint: true }))
  return found === undefined ? [place] : [place, `${found.dev}:${found.ino}`]
}

function placeOf(path: string, linksLeft: number): string {
  // Undefined where it is not there yet, or a link leads to what is not there.
  const real = readable(() => realpathSync(path))
  if (real !== undefined) return real
  const link = linksLeft === 0 ? undefined : readable(() => readlinkSync(path))
  if (link !== undefined) return placeOf(resolve(dirname(path), link), linksLeft - 1)
  return dirname(path) === path ? path : join(placeOf(dirname(path), linksLeft), basename(path))
}
