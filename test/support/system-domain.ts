import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { toolsWith } from './folder.ts'
import { type Heddle, type StartOptions, startHeddle } from './heddle.ts'
import { SHIPPED, systemDomain } from './shipped-domains.ts'

const FIXTURES = fileURLToPath(new URL('../fixtures/system', import.meta.url))

export interface SystemOptions extends Omit<StartOptions, 'domains'> {
  /** Plugin files of the system domain that are left out, without `.ts`. */
  without?: readonly string[]
  /** Adds the tool `flaky` and the domain that switches it. */
  flaky?: boolean
}

/** The system domain as shipped and the domain `probe`, without whatever else stands in the shipped domains. */
export async function startSystem(t: TestContext, options: SystemOptions = {}): Promise<Heddle> {
  const { without, flaky = false, env, ...rest } = options
  const domains = [systemDomain(without), join(FIXTURES, 'domains')]
  if (!flaky) return startHeddle(t, { ...rest, domains, env })
  const tool = `export { default } from '${join(FIXTURES, 'tools/flaky/index.ts')}'\n`
  const TOOLS_DIR = await toolsWith(t, { 'flaky/index.ts': tool })
  return startHeddle(t, {
    ...rest,
    domains: [...domains, join(FIXTURES, 'ailing-domains')],
    env: { ...env, TOOLS_DIR },
  })
}

/** Names of the shipped plugin files of the system domain, without `.ts`. */
export async function systemPlugins(): Promise<string[]> {
  return (await readdir(join(SHIPPED, 'system/plugins'))).map((name) => name.replace(/\.ts$/, ''))
}
