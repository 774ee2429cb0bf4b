import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, type StartOptions, startHeddle } from './heddle.ts'
import { SHIPPED } from './shipped-domains.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FIXTURES = join(ROOT, 'test/fixtures/system')

export interface SystemOptions extends Omit<StartOptions, 'domains'> {
  /** Plugin files of the system domain that are left out, without `.ts`. */
  without?: readonly string[]
  /** Adds the tool `flaky` and the domain that switches it. */
  flaky?: boolean
}

/** The system domain as shipped and the domain `probe`, without whatever else stands in the shipped domains. */
export async function startSystem(t: TestContext, options: SystemOptions = {}): Promise<Heddle> {
  const { without = [], flaky = false, env = {}, ...rest } = options
  // Inside the repository, so that `#heddle` resolves.
  const directory = await mkdtemp(join(ROOT, 'test/rooms/system/.run-'))
  t.after(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }))
  const domains = join(directory, 'domains')
  await cp(join(SHIPPED, 'system'), join(domains, 'system'), {
    recursive: true,
    dereference: true,
    filter: (source) => !without.some((name) => source.endsWith(`/${name}.ts`)),
  })
  const roots = [domains, join(FIXTURES, 'domains')]
  if (flaky) {
    roots.push(join(FIXTURES, 'ailing-domains'))
    env.TOOLS_DIR = await writeTools(join(directory, 'tools'))
  }
  return startHeddle(t, { ...rest, domains: roots, env })
}

/** Names of the shipped plugin files of the system domain, without `.ts`. */
export async function systemPlugins(): Promise<string[]> {
  return (await readdir(join(SHIPPED, 'system/plugins'))).map((name) => name.replace(/\.ts$/, ''))
}

/** A tools folder with every shipped tool, and `flaky`. */
async function writeTools(directory: string): Promise<string> {
  const shipped = join(ROOT, 'src/tools')
  const folders = (await readdir(shipped)).map((name) => join(shipped, name))
  for (const folder of [...folders, join(FIXTURES, 'tools/flaky')]) {
    const own = join(directory, folder.slice(folder.lastIndexOf('/') + 1))
    await mkdir(own, { recursive: true })
    await writeFile(join(own, 'index.ts'), `export { default } from '${folder}/index.ts'\n`)
  }
  return directory
}
