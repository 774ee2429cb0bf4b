import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ENTRIES, type Entry, NO_SERVER } from './entries.ts'
import { type Result, readResults } from './results.ts'
import { wrongsOf } from './verdict.ts'

const PAGE = fileURLToPath(new URL('../../src/guides/packages.md', import.meta.url))
const TABLE =
  /(<!-- The table is generated: npm run test:packages -- --page -->\n\n).*?(\n\n<!-- end of the table -->)/s

/** What the page has, and what it should have. */
export function pageTexts(): { is: string; should: string } {
  const is = readFileSync(PAGE, 'utf8')
  const table = tableOf(ENTRIES, readResults())
  return { is, should: is.replace(TABLE, (_, before, after) => before + table + after) }
}

export function writePage(): void {
  writeFileSync(PAGE, pageTexts().should)
}

/** In Markdown, a package a row. */
export function tableOf(entries: readonly Entry[], results: readonly Result[]): string {
  const row = (texts: readonly string[]): string => `| ${texts.join(' | ')} |`
  const rows = entries.map((entry) => {
    const own = results.filter(({ name }) => name === entry.name)
    const versions = [...new Set(own.map(({ version }) => version))].join(', ')
    const nodes = own.filter((each) => wrongsOf(each).length === 0).map(({ node }) => node)
    return [`\`${entry.name}\``, versions, answerOf(entry, own), entry.does, nodes.join(', ')] as const
  })
  const count = (begin: string): number => rows.filter(([, , answer]) => answer.startsWith(begin)).length
  const withLine = count('works with')
  return [
    `${entries.length} packages: ${count('works') - withLine} work, ${withLine} with one line, ${count('loads')} load and had no server to talk to, ${count('**')} do not.`,
    '',
    row(['package', 'version', '', 'what it did', 'Node']),
    row(['---', '---', '---', '---', '---']),
    ...rows.map(row),
  ].join('\n')
}

function answerOf({ does, line, instead, note }: Entry, results: readonly Result[]): string {
  const said = note === undefined ? '' : `; ${note}`
  if (instead !== undefined) return `**not**: ${instead}`
  if (results.length === 0) return 'not tried'
  const wrongs = results.flatMap((each) => wrongsOf(each).map((wrong) => `${each.node}: ${wrong}`))
  if (wrongs.length > 0) return `**fails** on ${wrongs.join('; ')}`.replaceAll('|', '\\|').replaceAll('\n', ' ')
  if (does.startsWith(NO_SERVER)) return `loads${said}`
  return line === undefined ? `works${said}` : `works with ${line}${said}`
}
