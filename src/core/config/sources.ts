// Where settings come from besides the environment: secret files, URLs, chosen tools, shipped domains.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readText, TextFault } from '../../preload/text-file.cjs'
import { messageOf } from '../errors/description.ts'

export const FILE_SUFFIX = '_FILE'
/** More than any key, and less than what a wrong path (a device, a log) would bring in. */
const SECRET_MAX_BYTES = 64 * 1024

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The secrets that stand in files: `<NAME>_FILE` has the path, as orchestrators mount them. One line end at the end of the file is dropped.
 * @param faults gets a line for each file that cannot be read, and each secret that is set twice
 * @returns the secrets that were read, by name
 */
export function readSecretFiles(env: Environment, names: Iterable<string>, faults: string[]): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const name of names) {
    const path = env[name + FILE_SUFFIX]?.trim() ?? ''
    if (path === '') continue
    if ((env[name] ?? '') !== '') {
      faults.push(`${name}${FILE_SUFFIX}: expected nothing because ${name} is set, got ${JSON.stringify(path)}`)
      continue
    }
    try {
      secrets[name] = readSecret(resolve(path))
    } catch (error) {
      faults.push(`${name}${FILE_SUFFIX}: expected a file with the secret, got ${messageOf(error)}`)
    }
  }
  return secrets
}

function readSecret(file: string): string {
  const stats = statSync(file)
  // A pipe would block the start until somebody writes.
  if (!stats.isFile()) throw new Error(`${file}, which is not a file`)
  if (stats.size > SECRET_MAX_BYTES) throw new Error(`${file} with ${stats.size} bytes, more than ${SECRET_MAX_BYTES}`)
  const text = readText(file).replace(/\r?\n$/, '')
  if (text.trim() === '') throw new Error(`${file}, which is empty`)
  return text
}

/** The variables that a URL fills, by name. */
type Filled = Record<string, string>

/** What a URL asks for that has no variable goes here, one line each. */
interface Report {
  faults: string[]
  warnings: string[]
}

const ENCODE = 'percent-encode what is special in the user and the password (@ as %40, / as %2F, # as %23, ? as %3F)'

/** `sslmode` of libpq → `RDB_TLS`. A certificate is checked with its host name or not at all. */
const SSL_MODES: Readonly<Record<string, string>> = {
  disable: 'off',
  require: 'require',
  'no-verify': 'require',
  'verify-ca': 'verify',
  'verify-full': 'verify',
}

/**
 * What `DATABASE_URL` and `REDIS_URL` say, as `RDB_*` and `KV_*`. It holds passwords, so no fault and no warning has a part of a URL in it
 * but names of parameters.
 * @param given the text of a variable, which may stand in a file
 */
export function readConnectionUrls(given: (name: string) => string | undefined, report: Report): Filled {
  return {
    ...read('DATABASE_URL', given('DATABASE_URL'), databaseVariables, report),
    ...read('REDIS_URL', given('REDIS_URL'), storeVariables, report),
  }
}

/** The URL that fills a variable. */
export function urlFor(name: string): string {
  return name.startsWith('RDB_') ? 'DATABASE_URL' : 'REDIS_URL'
}

type Reader = (url: URL, tell: (warning: string) => void) => Filled

function read(name: string, text: string | undefined, reader: Reader, { faults, warnings }: Report): Filled {
  if (text === undefined || text.trim() === '') return {}
  try {
    const entries = Object.entries(reader(parse(text.trim()), (warning) => warnings.push(`${name}: ${warning}`)))
    return Object.fromEntries(entries.filter(([, value]) => value !== ''))
  } catch (error) {
    if (!(error instanceof UrlFault)) throw error
    faults.push(`${name}: ${error.message}`)
    return {}
  }
}

class UrlFault extends Error {}

function parse(text: string): URL {
  // A password that is not encoded moves the parts: what follows it would be taken for a host, a path or a parameter, and shown.
  const afterHost = text.replace(/^[a-z+]+:\/\/[^/?#]*/i, '')
  if (!URL.canParse(text) || /[@#]/.test(afterHost)) {
    throw new UrlFault(`expected a URL like scheme://user:password@host:port/name, got something else; ${ENCODE}`)
  }
  return new URL(text)
}

function databaseVariables(url: URL, tell: (warning: string) => void): Filled {
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') {
    throw new UrlFault(
      'expected a URL that begins with postgres:// or postgresql://, got another; the file of SQLite is SQLITE_PATH',
    )
  }
  const { sslmode, ssl, sslrootcert, host, port, user, password, dbname, options, ...others } = parameters(url)
  warnOfOthers(others, tell)
  const tls = databaseTls(sslmode, ssl, sslrootcert)
  return {
    RDB_HOST: host ?? hostOf(url),
    RDB_PORT: port ?? url.port,
    RDB_USER: user ?? decoded(url.username),
    RDB_PASSWORD: password ?? decoded(url.password),
    RDB_DATABASE: dbname ?? pathOf(url, 'the name of a database'),
    RDB_SCHEMA: schemaIn(options, tell),
    RDB_TLS: tls,
    RDB_CA_FILE: tls === 'verify' && sslrootcert !== 'system' ? (sslrootcert ?? '') : '',
  }
}

/** `-c search_path=…` names the schema; no other setting of a session has an effect. */
function schemaIn(options: string | undefined, tell: (warning: string) => void): string {
  if (options === undefined) return ''
  const set = [...options.matchAll(/(?:^|\s)(?:-c\s*|--)([\w.]+)=((?:\\.|[^\s\\])*)/g)]
  const paths = set.flatMap(([, name, value]) => (name === 'search_path' ? [value!.replaceAll('\\', '')] : []))
  if (paths.length < set.length || set.length === 0)
    tell('of the parameter options nothing but -c search_path=… has an effect')
  const schemas = (paths.at(-1) ?? '').split(',').map((each) => each.trim().replace(/^"(.*)"$/, '$1'))
  const [schema = '', ...others] = schemas.filter((each) => each !== 'pg_temp')
  if (others.length > 0)
    throw new UrlFault('options: expected a search_path of one schema, which is RDB_SCHEMA, got several')
  return schema
}

function databaseTls(mode: string | undefined, ssl: string | undefined, authorities: string | undefined): string {
  if (mode === undefined && ssl === undefined) return authorities === undefined ? '' : 'verify'
  if (mode === undefined) {
    if (ssl === 'true' || ssl === '1') return 'verify'
    if (ssl === 'false' || ssl === '0') return 'off'
    throw new UrlFault('ssl: expected true or false, got something else')
  }
  const tls = SSL_MODES[mode]
  if (tls === undefined) {
    throw new UrlFault(
      `sslmode: expected one of ${Object.keys(SSL_MODES).join(', ')}, got another: a connection is encrypted or it is not`,
    )
  }
  // As libpq has it: who names the authorities wants them asked.
  return tls === 'require' && mode === 'require' && authorities !== undefined ? 'verify' : tls
}

function storeVariables(url: URL, tell: (warning: string) => void): Filled {
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new UrlFault('expected a URL that begins with redis:// or rediss://, got another')
  }
  const { db, ...others } = parameters(url)
  warnOfOthers(others, tell)
  return {
    KV_HOST: hostOf(url),
    KV_PORT: url.port,
    KV_USER: decoded(url.username),
    KV_PASSWORD: decoded(url.password),
    KV_DB: db ?? pathOf(url, 'the number of a database'),
    // redis:// says nothing: then the warning of passwords that go as text stays.
    KV_TLS: url.protocol === 'rediss:' ? 'verify' : '',
  }
}

function hostOf({ hostname }: URL): string {
  if (hostname.includes(',')) throw new UrlFault('expected one host, got several')
  return decoded(hostname).replace(/^\[(.*)\]$/, '$1')
}

function pathOf({ pathname }: URL, what: string): string {
  const path = pathname.replace(/^\//, '')
  if (path.includes('/')) throw new UrlFault(`expected ${what} after the host, got a path; ${ENCODE}`)
  return decoded(path)
}

function parameters(url: URL): Record<string, string | undefined> {
  return Object.fromEntries([...url.searchParams].filter(([, value]) => value !== ''))
}

function warnOfOthers(others: object, tell: (warning: string) => void): void {
  const names = Object.keys(others).filter((name) => /^[a-z_]{1,40}$/i.test(name))
  if (names.length > 0) tell(`these parameters have no effect: ${names.join(', ')}`)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new UrlFault(`expected %XX only as code of a character; ${ENCODE}, and % as %25`)
  }
}

/** What `"heddle": { "tools": { "db": "postgres" } }` of the application's package.json chooses, as TOOLS says it; undefined when it says nothing. */
export function chosenTools(faults: string[]): string | undefined {
  let text: string
  try {
    text = readText(resolve('package.json'))
  } catch (error) {
    if (error instanceof TextFault) faults.push(error.message)
    // Not every folder in which a process is started has one.
    return undefined
  }
  let manifest: { heddle?: { tools?: unknown } }
  try {
    manifest = JSON.parse(text)
  } catch (error) {
    faults.push(`package.json: is no JSON: ${(error as Error).message}`)
    return undefined
  }
  const tools = manifest.heddle?.tools
  if (tools === undefined) return undefined
  const entries = typeof tools === 'object' && tools !== null ? Object.entries(tools) : []
  if (entries.length === 0 || entries.some(([, chosen]) => typeof chosen !== 'string' || !/^[\w-]+$/.test(chosen))) {
    faults.push('package.json: heddle.tools: expected implementations by tool, like { "db": "postgres" }')
    return undefined
  }
  return entries.map(([tool, chosen]) => `${tool}=${chosen}`).join(',')
}

const isPackage = import.meta.url.endsWith('.js')
/** In the package it is alone in its folder. In the repository the examples are beside it. */
const SHIPPED = fileURLToPath(new URL('../../../domains', import.meta.url))
/** For the repository: a folder with the system domain alone, by links. */
const LINKED = fileURLToPath(new URL('../../../node_modules/.cache/heddle-system', import.meta.url))

/** The folders of an application, and behind them one with the shipped system domain, unless one of them has its own. */
export function withShippedDomains(folders: readonly string[]): readonly string[] {
  if (folders.some((folder) => existsSync(join(folder, 'system')))) return folders
  const shipped = isPackage ? SHIPPED : linked()
  return shipped === null ? folders : [...folders, shipped]
}

/** Null where it cannot be made: on a disk that is read-only, and beside an application that has only a part of the repository. */
function linked(): string | null {
  const source = join(SHIPPED, 'system')
  if (!existsSync(source)) return null
  const names = readdirSync(source)
  const isWhole = names.every((name) => existsSync(join(LINKED, 'system', name)))
  if (isWhole) return LINKED
  try {
    mkdirSync(dirname(LINKED), { recursive: true })
    const made = mkdtempSync(`${LINKED}-`)
    mkdirSync(join(made, 'system'))
    for (const name of names) symlinkSync(join(source, name), join(made, 'system', name))
    rmSync(LINKED, { recursive: true, force: true })
    renameSync(made, LINKED)
  } catch {
    // Another process may have been faster.
  }
  return existsSync(join(LINKED, 'system')) ? LINKED : null
}
