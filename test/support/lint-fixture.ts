import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { displayPath, type RuleName } from '../../src/devtools/lint/finding.ts'
import { type LintReport, type RunningProcess, reportOf } from '../../src/devtools/lint/report.ts'
import { readSources } from '../../src/devtools/lint/sources.ts'

/** The report, made in this process. */
export const lintArchitecture = async (
  domainsDirs: readonly string[],
  toolsDir: string,
  running?: RunningProcess,
): Promise<LintReport> => reportOf(await readSources(domainsDirs, toolsDir), running)

export const scanEvents = async (domainsDirs: readonly string[]) => (await readSources(domainsDirs, 'src/tools')).events

export interface Fixture {
  root: string
  domains: string
  tools: string
  write(file: string, text: string): Promise<void>
  lint(): Promise<LintReport>
  /** Findings as `<file below domains/>:<line> <severity> <message>`. */
  findings(rule: RuleName): Promise<string[]>
}

/** A folder with `domains/` and `src/tools/`, gone when the test is over. @param files below `domains/` */
export async function fixture(t: TestContext, files: Record<string, string>): Promise<Fixture> {
  const root = await mkdtemp(path.join(tmpdir(), 'heddle-lint-'))
  t.after(() => rm(root, { recursive: true, force: true, maxRetries: 10 }))
  const domains = path.join(root, 'domains')
  const tools = path.join(root, 'src', 'tools')
  await mkdir(domains)
  // The contracts are loaded, and they load zod.
  await symlink(path.resolve(import.meta.dirname, '../../node_modules'), path.join(root, 'node_modules'))
  await writeFile(path.join(root, 'package.json'), '{ "type": "module" }')
  const write = async (file: string, text: string) => {
    await mkdir(path.dirname(path.join(domains, file)), { recursive: true })
    await writeFile(path.join(domains, file), text)
  }
  for (const [file, text] of Object.entries(files)) await write(file, text)
  const lint = () => lintArchitecture([domains], tools)
  const prefix = `${displayPath(domains)}/`
  const findings = async (rule: RuleName) =>
    (await lint()).findings
      .filter((finding) => finding.rule === rule)
      .map(({ file, line, severity, message }) => {
        return `${file.replace(prefix, '')}:${line} ${severity} ${message.replaceAll(prefix, '')}`
      })
  return { root, domains, tools, write, lint, findings }
}

/** Lints sources that say what of a rule is found in them: a line ends with `//! <severity> <message>` for each finding there. */
export async function assertFindings(t: TestContext, rule: RuleName, files: Record<string, string>): Promise<void> {
  const expected: string[] = []
  const sources = Object.entries(files).map(([file, text]) => {
    const lines = text.split('\n').map((line, n) => {
      const [source, ...messages] = line.split(/ *\/\/! /)
      expected.push(...messages.map((message) => `${file}:${n + 1} ${message}`))
      return source
    })
    return [file, lines.join('\n')]
  })
  const { findings } = await fixture(t, Object.fromEntries(sources))
  assert.deepEqual((await findings(rule)).sort(), expected.sort())
}

/** A plugin that runs `body` in `onBoot`, which begins in line 9. */
export function plugin(className: string, body: string): string {
  return `import { Plugin, type Tools } from '#heddle'

export default class ${className} extends Plugin {
  #bus; #db; #http
  constructor({ event_bus, db, http }: Tools) {
    super(); this.#bus = event_bus; this.#db = db; this.#http = http
  }
  async onBoot() {
${body}
  }
}
`
}
