import { existsSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { readText } from '../../preload/text-file.cjs'
import { activeTools, toolNameOf } from '../../runtime/kernel/discover.ts'
import { contractPlace, eventsOf } from '../lint/event-contract.ts'
import { type Plugin, readProject } from '../lint/project.ts'
import { staticRoutes } from '../lint/route-collision.ts'

const START = '<!-- heddle agents: up to the mark below, `heddle agents` writes this part -->'
const END = '<!-- heddle agents: end -->'

/** What the scripts of a project are for. Others are the project's own, and it says so itself. */
const SCRIPTS: Readonly<Record<string, string>> = {
  dev: 'serves, loads what is saved, and logs a line per request',
  start: 'serves',
  test: 'all tests; `npm test orders`: those whose path has the word',
  check: 'types, linter where it is installed, architecture: must pass',
  lint: 'the architecture alone',
  new: '`npm run new -- domain orders`, `-- plugin orders/cancel-order`, `-- migration orders/add_total`',
  migrate:
    '`npm run migrate -- status`, `-- down`, `-- redo`, `-- reset` (stop the process first); they are applied at each start, and under `npm run dev` as they are saved',
  tools: 'which implementation of each tool is active',
  client: '`npm run client -- --out client.ts`: a typed client of the service',
  agents: 'writes this part anew',
}

export interface AgentsSource {
  /** Of the project, absolute. */
  folder: string
  domainsDirs: readonly string[]
  toolsDir: string
  /** As TOOLS has it. */
  tools: string | undefined
}

/**
 * `AGENTS.md` with what the sources of a project show: its domains, plugins, routes, events, tools and commands. The rest of the text stays.
 * @param text what the file holds; empty for none
 */
export async function withAgentsPart(text: string, source: AgentsSource): Promise<string> {
  const part = `${START}\n${await partOf(source)}${END}`
  const start = text.indexOf(START)
  const end = text.indexOf(END)
  if (start >= 0 && end > start) return text.slice(0, start) + part + text.slice(end + END.length)
  const before = text === '' ? '# For coding agents\n' : text
  return `${before.trimEnd()}\n\n${part}\n`
}

async function partOf({ folder, domainsDirs, toolsDir, tools }: AgentsSource): Promise<string> {
  const project = await readProject(domainsDirs.filter((each) => existsSync(each)))
  const events = eventsOf(project)
  const routes = staticRoutes(project)
  const own = project.plugins.filter(({ domain }) => domain !== 'system').sort(byName)
  const domains = [...new Set(own.map(({ domain }) => domain))]
  const place = (file: string): string => relative(folder, file)
  const rows = events
    .map((each) => ({ ...each, contract: contractPlace(project, each.event) }))
    .filter(({ event, contract }) => contract?.domain !== 'system' && !event.startsWith('_'))
    .map(({ event, emitters, subscribers, contract }) => {
      const where = contract === undefined ? 'none' : `\`${place(contract.file)}:${contract.line}\``
      return `| \`${event}\` | ${listed(emitters)} | ${listed(subscribers)} | ${where} |\n`
    })
  const lineOf = ({ name, file }: Plugin): string => {
    const answers = routes
      .filter(({ plugins }) => plugins.includes(name))
      .map(({ method, path }) => `${method} ${path}`)
    const handles = events.filter(({ subscribers }) => subscribers.includes(name)).map(({ event }) => event)
    const publishes = events.filter(({ emitters }) => emitters.includes(name)).map(({ event }) => event)
    const does = Object.entries({ answers: [...new Set(answers)].sort(), handles, publishes })
      .filter(([, names]) => names.length > 0)
      .map(([verb, names]) => `${verb} ${listed(names)}`)
    return `  - \`${name}\` in \`${place(file)}\`${does.length > 0 ? `: ${does.join('; ')}` : ''}\n`
  }
  return [
    '## What is here\n\n',
    ...domains.map((domain) => {
      const plugins = own.filter((plugin) => plugin.domain === domain)
      return `- **${domain}**\n${plugins.map(lineOf).join('')}`
    }),
    ...(domains.length === 0 ? ['There are no domains yet: `npm run new -- domain orders`.\n'] : []),
    ...(rows.length === 0
      ? []
      : ['\n| event | published by | handled by | contract |\n| --- | --- | --- | --- |\n', ...rows]),
    `\nTools that a plugin may take: ${toolList(toolsDir, tools)}.\n\n`,
    ...commandLines(folder),
    `\nWhile \`npm run dev\` runs, \`http://127.0.0.1:8000/system/mcp\` is a server of the Model Context Protocol: why a request failed, which line hangs, what caused what, the contracts,
the logs, and a request to try a change. \`/system/openapi.json\` is the interface.\n`,
  ].join('')
}

function toolList(toolsDir: string, tools: string | undefined): string {
  return activeTools(toolsDir, tools)
    .map((folder) => ({ name: toolNameOf(folder), implementation: basename(folder.path) }))
    .map(({ name, implementation }) =>
      name === null || name.replaceAll('_', '-') === implementation
        ? `\`${name ?? implementation}\``
        : `\`${name}\` (${implementation})`,
    )
    .sort()
    .join(', ')
}

function commandLines(folder: string): string[] {
  let scripts: Record<string, string> = {}
  try {
    scripts = JSON.parse(readText(join(folder, 'package.json'))).scripts ?? {}
  } catch {
    // A folder of domains alone has no commands of its own.
  }
  return Object.entries(SCRIPTS)
    .filter(([name]) => scripts[name] !== undefined)
    .map(([name, purpose]) => `- \`npm ${name === 'start' || name === 'test' ? name : `run ${name}`}\`: ${purpose}\n`)
}

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ') || '–'

const byName = (a: Plugin, b: Plugin): number => (a.name < b.name ? -1 : 1)
