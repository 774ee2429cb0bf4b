import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A folder of domains in `test/fixtures`. */
export const fixtureDomains = (name: string): string => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))

const DOMAINS = fileURLToPath(new URL('../../domains', import.meta.url))
const PLACE = fileURLToPath(new URL('../../node_modules/.cache/heddle-tests/', import.meta.url))

/** What is shipped in the folders to which people add their own files. A new plugin of a shipped domain belongs in this list. */
const PARTS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  examples: { plugins: ['say-hello.ts', 'show-metrics.ts'] },
  system: {
    plugins: [
      'check-tools.ts',
      'export-metrics.ts',
      'lint-architecture.ts',
      'list-traces.ts',
      'log-in.ts',
      'manage-dead-letters.ts',
      'manage-jobs.ts',
      'manage-queues.ts',
      'monitor-deliveries.ts',
      'publish-event.ts',
      'report-liveness.ts',
      'report-readiness.ts',
      'serve-assistants.ts',
      'show-client.ts',
      'show-dashboard.ts',
      'show-docs.ts',
      'show-lanes.ts',
      'show-openapi.ts',
      'show-plugins.ts',
      'show-requests.ts',
      'show-status.ts',
      'show-topology.ts',
      'show-trace-tree.ts',
      'stream-dashboard.ts',
      'stream-events.ts',
      'stream-logs.ts',
      'stream-traces.ts',
    ],
  },
  users: {
    migrations: ['001_users.sql', '002_sessions.sql'],
    plugins: [
      'create-user.ts',
      'delete-user.ts',
      'log-in.ts',
      'log-out.ts',
      'refresh-token.ts',
      'send-welcome.ts',
      'show-me.ts',
      'show-user.ts',
      'summarize-day.ts',
    ],
  },
}

/** What is not in the folders to which people add. */
const links = Object.entries(PARTS).flatMap(([domain, parts]) => [
  ...Object.entries(parts).flatMap(([part, names]) => names.map((name) => join(domain, part, name))),
  ...readdirSync(join(DOMAINS, domain))
    .filter((name) => parts[name] === undefined && name !== 'migrations')
    .map((name) => join(domain, name)),
])

/**
 * The shipped domains alone, whatever else stands in `domains/`: a folder of links to their files, and of copies of their migrations, which is kept. So domains, plugins and
 * migrations that somebody adds in a clone change no test of the runtime.
 */
export const SHIPPED = folderOfLinks('shipped', links)

/** Some of the shipped routes under `/system`, for tests of something else: every thread loads the schemas of the shipped events. */
export const SYSTEM_ROUTES = folderOfLinks('system-routes', [
  'system/operator-acts.ts',
  ...[
    'export-metrics',
    'list-traces',
    'manage-dead-letters',
    'manage-queues',
    'report-liveness',
    'report-readiness',
    'show-lanes',
    'show-status',
    'show-topology',
    'stream-logs',
  ].map((name) => `system/plugins/${name}.ts`),
])

/** The system domain as shipped. @param without plugin files that are left out, without `.ts` */
export function systemDomain(without: readonly string[] = []): string {
  const isLeftOut = (file: string): boolean => without.some((name) => file === `system/plugins/${name}.ts`)
  return folderOfLinks(
    'system',
    links.filter((file) => file.startsWith('system/') && !isLeftOut(file)),
  )
}

function folderOfLinks(title: string, links: readonly string[]): string {
  const isCopied = (file: string): boolean => file.endsWith('.sql')
  const texts = links.filter(isCopied).map((file) => readFileSync(join(DOMAINS, file), 'utf8'))
  const hash = createHash('sha1')
    .update([DOMAINS, ...links, ...texts].join('\n'))
    .digest('hex')
    .slice(0, 12)
  const folder = join(PLACE, `${title}-${hash}`)
  if (existsSync(folder)) return folder
  mkdirSync(PLACE, { recursive: true })
  const made = mkdtempSync(join(PLACE, 'making-'))
  for (const link of links) {
    mkdirSync(join(made, link, '..'), { recursive: true })
    // A migration that is a link is not found.
    if (isCopied(link)) cpSync(join(DOMAINS, link), join(made, link))
    else symlinkSync(join(DOMAINS, link), join(made, link))
  }
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another process was faster.
    if (!existsSync(folder)) throw error
    rmSync(made, { recursive: true })
  }
  return folder
}
