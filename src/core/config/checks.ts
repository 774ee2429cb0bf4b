// Settings against each other: TLS, tokens, several processes.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { messageOf } from '../errors/description.ts'
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
  if (number === null) return
  const { processes, nodeAppInstance: instance = 0, httpPort, systemPort } = settings
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

/** Checks the settings of tokens against each other. A setting that has a fault of its own is missing. */
export function checkTokens(settings: Partial<Settings>, faults: string[]): void {
  const { authSecretKeys, authJwksUrl, authJwksIssuer, authAudience } = settings
  const kids = (authSecretKeys ?? '').split(',').map((entry) => entry.trim().split(':')[0]!)
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
