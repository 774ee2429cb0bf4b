import { existsSync } from 'node:fs'
import { basename, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError } from '../../core/config/command-line.ts'
import { loadSettings } from '../../core/config/load.ts'
import { shown } from '../../core/errors/places.ts'
import { type Project, readProject } from '../lint/project.ts'

const REPOSITORY = resolve(fileURLToPath(new URL('../../..', import.meta.url)))

/** The folders of this project, and the sources in its domains. */
export interface Workplace {
  /** The project's folder. */
  root: string
  /** DOMAINS_DIR, absolute. */
  domainsDirs: readonly string[]
  /** TOOLS_DIR, absolute. */
  toolsDir: string
  /** Where tests of domains and tools are written, absolute. */
  testsDir: string
  project: Project
}

export async function openWorkplace(): Promise<Workplace> {
  const { domainsDir, toolsDir } = loadSettings().settings
  const domainsDirs = domainsDir.map((folder) => resolve(folder))
  const root = process.cwd()
  return {
    root,
    domainsDirs,
    toolsDir: resolve(toolsDir),
    // In the runtime's own repository they are kept apart from the tests of the runtime, which know nothing of the domains in a clone.
    testsDir: join(root, root === REPOSITORY ? 'test/app' : 'test'),
    project: await readProject(domainsDirs),
  }
}

/** The folder for a new domain. @param within one of DOMAINS_DIR; default: the first */
export function newDomainFolder(workplace: Workplace, domain: string, within: string | undefined): string {
  const taken = workplace.domainsDirs.map((folder) => join(folder, domain)).find((folder) => existsSync(folder))
  if (taken !== undefined) throw new CommandError(`There is a domain ${domain} already: ${shown(taken)}`)
  return join(rootOf(workplace, within), domain)
}

/** The folder of an existing domain. @param within one of DOMAINS_DIR, when several of them hold the domain */
export function domainFolder(workplace: Workplace, domain: string, within: string | undefined): string {
  const roots = within === undefined ? workplace.domainsDirs : [rootOf(workplace, within)]
  const found = roots.map((folder) => join(folder, domain)).filter((folder) => existsSync(folder))
  if (found.length > 1) {
    throw new CommandError(
      `Several folders hold the domain ${domain}: say which by --in ${roots.map(shown).join(' or --in ')}`,
    )
  }
  if (found.length === 1) return found[0]!
  throw new CommandError(
    `There is no domain ${domain} in ${roots.map(shown).join(', ')}; make it with: npm run new -- domain ${domain}`,
  )
}

/** The folder for what is for all domains. @param within one of DOMAINS_DIR; default: the first */
export function rootOf({ domainsDirs }: Workplace, within: string | undefined): string {
  if (within === undefined) return domainsDirs[0]!
  const root = domainsDirs.find((folder) => folder === resolve(within))
  if (root !== undefined) return root
  throw new CommandError(`--in ${within}: not one of DOMAINS_DIR, which has ${domainsDirs.map(shown).join(', ')}`)
}

/** The test file of a plugin or a tool. */
export function testFile({ testsDir }: Workplace, folder: string, name: string): string {
  return join(testsDir, folder, `${name}.test.ts`)
}

/** The specifier with which one file imports another. */
export function importPath(fromFile: string, toFile: string): string {
  const path = relative(join(fromFile, '..'), toFile).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

/** The source text by which a test names a domain: its name when the testing kit finds it by that, else its path. */
export function domainChoice(workplace: Workplace, test: string, folder: string): string {
  const usual = join(workplace.root, 'domains', basename(folder))
  return folder === usual ? `'${basename(folder)}'` : `new URL('${importPath(test, folder)}', import.meta.url)`
}
