import { OPTIONAL_PACKAGES, ownManifest } from '../../core/modules/optional-package.ts'

interface Use {
  /** Optional peers of heddle. */
  packages: readonly string[]
  /** Packages that heddle is developed with, and an application may be. */
  development?: readonly string[]
  /** Lines for `.env.example`. */
  settings: readonly string[]
}

/** What an application may use, and what has to be installed for it. */
const USES: Readonly<Record<string, Use>> = {
  postgres: {
    packages: OPTIONAL_PACKAGES.postgres,
    settings: ['TOOLS=postgres', 'DATABASE_URL=postgres://user:password@localhost:5432/name'],
  },
  redis: {
    packages: OPTIONAL_PACKAGES.redis,
    settings: [
      'TOOLS=redis-state    # with PostgreSQL: postgres,redis-state',
      'EVENT_BUS_DRIVER=keyvalue_streams',
      'REDIS_URL=redis://localhost:6379',
    ],
  },
  opentelemetry: {
    packages: OPTIONAL_PACKAGES.opentelemetry,
    settings: ['OTEL_ENABLED=true', 'OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317'],
  },
  assistants: { packages: OPTIONAL_PACKAGES.assistants, settings: [] },
  checks: { packages: OPTIONAL_PACKAGES.lint, development: ['typescript', '@biomejs/biome'], settings: [] },
}

export const USE_NAMES = Object.keys(USES)

/** What package.json asks for, beside heddle. */
export function packagesOf(uses: readonly string[]): {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
} {
  const { peerDependencies, devDependencies } = ownManifest()
  const found = { dependencies: {} as Record<string, string>, devDependencies: {} as Record<string, string> }
  for (const { packages, development } of uses.map((name) => USES[name]!)) {
    const kind = development === undefined ? 'dependencies' : 'devDependencies'
    for (const name of packages) found[kind][name] = peerDependencies[name]!
    for (const name of development ?? []) found.devDependencies[name] = devDependencies[name]!
  }
  return found
}

/** Each as a comment: nothing is switched on before its server is there. */
export const settingsOf = (uses: readonly string[]): string =>
  uses.flatMap((name) => USES[name]!.settings.map((line) => `# ${line}\n`)).join('')
