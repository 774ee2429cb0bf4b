import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownManifest } from '../../core/modules/optional-package.ts'

/** Where an application gets heddle from. */
export interface HeddleSource {
  /** For its package.json. */
  range: string
  /** The packed file, which belongs into its folder; null where npm gets it from a registry, or where nobody knows it. */
  file: string | null
  /** How the packed file comes into the folder, as lines to print. */
  steps(shownFolder: string): string[]
}

/**
 * As this heddle has come here: from a registry, or as a packed file, which the application takes along. In the repository `npm pack` makes one.
 * @param own a file of the package
 */
export function heddleSource(own = fileURLToPath(import.meta.url)): HeddleSource {
  const { version } = ownManifest()
  const name = `heddle-${version}.tgz`
  const packages = /^(.*[\\/]node_modules)[\\/]heddle[\\/]/.exec(own)?.[1]
  if (packages === undefined) {
    const steps = (folder: string): string[] => [
      `npm pack --silent --pack-destination ${folder}    # ${name}, which package.json names`,
    ]
    return { range: `file:${name}`, file: null, steps }
  }
  const resolved = resolvedFrom(packages)
  if (resolved !== undefined && !resolved.startsWith('file:'))
    return { range: `^${version}`, file: null, steps: () => [] }
  const file = resolved === undefined ? null : resolve(dirname(packages), resolved.slice('file:'.length))
  if (file !== null && existsSync(file)) return { range: `file:${basename(file)}`, file, steps: () => [] }
  const steps = (folder: string): string[] => [
    `# copy ${name}, the packed file of heddle, into ${folder}: package.json names it`,
  ]
  return { range: `file:${name}`, file: null, steps }
}

/** What npm has noted of the package. */
function resolvedFrom(packages: string): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(resolve(packages, '.package-lock.json'), 'utf8'))
    return lock.packages['node_modules/heddle'].resolved
  } catch {
    // Another program has installed it.
    return undefined
  }
}
