// Packages that an application installs when it needs them.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HeddleError } from '../errors/catalogue.ts'
import { codeOf, messageOf, readable } from '../errors/description.ts'

/** Packages that an application installs when it uses what needs them: optional peers in package.json, which has their ranges. */
export const OPTIONAL_PACKAGES = {
  postgres: ['pg'],
  redis: ['ioredis'],
  opentelemetry: [
    '@opentelemetry/api',
    '@opentelemetry/core',
    '@opentelemetry/exporter-trace-otlp-grpc',
    '@opentelemetry/resources',
    '@opentelemetry/sdk-trace-node',
  ],
  assistants: ['@modelcontextprotocol/sdk'],
  lint: ['oxc-parser'],
} as const

/** What is read of the package.json of heddle. */
interface OwnManifest {
  name: string
  version: string
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  peerDependencies: Record<string, string>
}

/** In the repository its root, in the package the package. */
const MANIFESTS = ['../../../package.json', '../../../../package.json']
const require = createRequire(import.meta.url)

/** The package.json of heddle. */
export function ownManifest(): OwnManifest {
  for (const path of MANIFESTS) {
    try {
      const manifest = JSON.parse(readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8'))
      if (manifest.name === 'heddle') return manifest as OwnManifest
    } catch {
      // It is the other one.
    }
  }
  throw new Error('The package.json of heddle is not there')
}

/**
 * Says the one command that installs what is not there.
 * @param user what needs the packages: a setting, a command, a page
 * @throws PACKAGE_MISSING
 */
export function needPackages(user: string, names: readonly string[]): void {
  const missing = names.filter((name) => !isInstalled(name))
  if (missing.length > 0) throw missingPackages(user, missing)
}

/** What a tool that does not load lacks; any other error as it is. @param user the tool's folder */
export function packageFault(error: unknown, user: string): unknown {
  const code = codeOf(error)
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return error
  const name = /Cannot find (?:module|package) '([^']+)'/.exec(messageOf(error))?.[1]
  const group = Object.values(OPTIONAL_PACKAGES).find((names: readonly string[]) => names.includes(name ?? ''))
  return group === undefined ? error : missingPackages(user, [name!])
}

function missingPackages(user: string, names: readonly string[]): HeddleError {
  const { peerDependencies } = ownManifest()
  const command = `npm install ${names.map((name) => `${name}@${peerDependencies[name]}`).join(' ')}`
  const which = names.length === 1 ? `${names[0]}, which is` : `${names.join(', ')}, which are`
  return new HeddleError('PACKAGE_MISSING', `${user} needs ${which} not installed: ${command}`)
}

/** Looks where Node would: what a package exports does not matter. */
const isInstalled = (name: string): boolean =>
  require.resolve.paths(name)?.some((folder) => readable(() => existsSync(join(folder, name, 'package.json')))) ?? false
