import type { Edge } from './source-graph.ts'

/** Who may import whom. The first capture of `from` is the folder that counts as a file's own: `{own}` in the targets. */
export interface ImportRule {
  name: string
  reason: string
  /** Which files it binds. */
  from: RegExp
  /** Targets that it allows: `node:`, `package:`, or the beginning of a path. Left out: all but `never`. */
  may?: readonly string[]
  /** Targets that it allows for types alone. */
  mayForTypes?: readonly string[]
  /** Targets that it forbids. */
  never?: readonly string[]
  /** An import that it must object to. */
  example: Pick<Edge, 'from' | 'to' | 'typeOnly'>
}

export const IMPORT_RULES: readonly ImportRule[] = [
  {
    name: 'errors import only node and the types of contracts',
    reason: 'every thread and every layer throws them',
    from: /^(src\/errors\/)/,
    may: ['node:', '{own}'],
    mayForTypes: ['src/contracts/'],
    example: { from: 'src/errors/wire.ts', to: 'src/config/load.ts', typeOnly: false },
  },
  {
    name: 'shm imports only node',
    reason: 'shared memory has a layout of its own and knows nothing of what is laid out',
    from: /^(src\/shm\/)/,
    may: ['node:', '{own}'],
    example: { from: 'src/shm/pulse.ts', to: 'src/contracts/tool.ts', typeOnly: true },
  },
  {
    name: 'config imports only node, errors and shm',
    reason: 'it is read before anything else exists',
    from: /^(src\/config\/)/,
    may: ['node:', '{own}', 'src/errors/', 'src/shm/'],
    example: { from: 'src/config/load.ts', to: 'src/kernel/discover.ts', typeOnly: false },
  },
  {
    name: 'causality imports only node, errors, shm and the types of contracts',
    reason: 'the context of a cause is the same on both sides of every thread border',
    from: /^(src\/causality\/)/,
    may: ['node:', '{own}', 'src/errors/', 'src/shm/'],
    mayForTypes: ['src/contracts/'],
    example: { from: 'src/causality/tree.ts', to: 'src/events/hub.ts', typeOnly: false },
  },
  {
    name: 'the kernel knows tools only by their contract',
    reason: 'a tool is swapped by moving a folder',
    from: /^(src\/kernel\/)/,
    never: ['src/tools/', 'src/extras/'],
    example: { from: 'src/kernel/inject.ts', to: 'src/tools/sqlite/index.ts', typeOnly: true },
  },
  {
    name: 'a tool imports contracts, errors, shm, what tools share and packages, never another tool',
    reason: 'a tool is swapped by moving a folder, alone',
    from: /^(src\/(?:tools|extras)\/[^/]+\/)/,
    // migrations, state, redis, jobs and schemas hold what several implementations of one tool, or several tools, have in common.
    may: [
      'node:',
      'package:',
      '{own}',
      'src/contracts/',
      'src/errors/',
      'src/shm/',
      'src/config/parse.ts',
      'src/db/',
      'src/migrations/',
      'src/state/',
      'src/redis/',
      'src/jobs/cron.ts',
      'src/schemas/',
    ],
    example: { from: 'src/tools/sqlite/index.ts', to: 'src/tools/logger/index.ts', typeOnly: false },
  },
  {
    name: 'redis imports only node, packages, errors and the types of config and contracts',
    reason: 'tools and the stream driver stand on it, in every thread',
    from: /^(src\/redis\/)/,
    may: ['node:', 'package:', '{own}', 'src/errors/'],
    mayForTypes: ['src/config/', 'src/contracts/'],
    example: { from: 'src/redis/client.ts', to: 'src/config/load.ts', typeOnly: false },
  },
  {
    name: 'schemas import only node, errors, the loader of modules and the types of contracts',
    reason: 'they are checked in every thread, and read by whoever documents them',
    from: /^(src\/schemas\/)/,
    may: ['node:', '{own}', 'src/errors/', 'src/kernel/discover.ts', 'src/kernel/load-module.ts'],
    mayForTypes: ['src/contracts/'],
    example: { from: 'src/schemas/event-contracts.ts', to: 'src/events/hub.ts', typeOnly: false },
  },
  {
    name: "the primary's parts never import the lane's end",
    reason: 'they meet only in the frames between the threads',
    from: /^src\/(?:http\/|events\/hub|lanes\/(?:lane|dispatcher|supervisor)\.ts)/,
    never: ['src/lanes/lane-server'],
    example: { from: 'src/http/listener.ts', to: 'src/lanes/lane-server.ts', typeOnly: false },
  },
  {
    name: "the lane's end never imports the primary's parts",
    reason: 'what a lane loads must not grow by the listener, the hub or the supervisor',
    from: /^src\/lanes\/lane-server/,
    never: ['src/http/', 'src/events/hub', 'src/lanes/lane.ts', 'src/lanes/supervisor.ts', 'src/lanes/dispatcher.ts'],
    example: { from: 'src/lanes/lane-server.ts', to: 'src/events/hub.ts', typeOnly: false },
  },
  {
    name: 'apidocs import only node, errors, schemas and the types of contracts and of the route table',
    reason: 'lanes load what hands their schemas over, and what is written of them runs nowhere else',
    from: /^(src\/apidocs\/)/,
    may: ['node:', '{own}', 'src/errors/', 'src/schemas/'],
    mayForTypes: ['src/contracts/', 'src/http/routes.ts'],
    example: { from: 'src/apidocs/openapi.ts', to: 'src/lanes/lane.ts', typeOnly: false },
  },
  {
    name: 'a domain imports #heddle, its own files and packages',
    reason: 'domains talk by events, and a plugin outlives the inside of the runtime',
    from: /^(domains\/[^/]+\/)/,
    may: ['node:', 'package:', '{own}', 'src/index.ts'],
    example: { from: 'domains/users/plugins/a.ts', to: 'domains/system/plugins/b.ts', typeOnly: true },
  },
  {
    name: 'tracing imports packages and what every layer stands on, never those that it traces',
    reason: 'they hold an interface, and null while tracing is off',
    from: /^(src\/tracing\/)/,
    may: ['node:', 'package:', '{own}', 'src/causality/', 'src/errors/', 'src/shm/', 'src/kernel/typescript-thread.ts'],
    mayForTypes: ['src/contracts/', 'src/config/'],
    example: { from: 'src/tracing/tool-spans.ts', to: 'src/events/hub.ts', typeOnly: true },
  },
  {
    name: 'contracts hold types alone',
    reason: 'every layer imports them, so they must not draw anything in',
    from: /^(src\/contracts\/)/,
    may: ['{own}'],
    mayForTypes: ['node:', 'package:', 'src/config/', 'src/causality/'],
    example: { from: 'src/contracts/tool.ts', to: 'src/config/schema.ts', typeOnly: false },
  },
]

/** Modules that one file alone may load; the types of packages are free, since nothing is left of them at run time. */
export const ONLY_IMPORTERS = [
  {
    target: 'package:uWebSockets.js',
    importer: 'src/http/listener.ts',
    reason: 'an unguarded call of it aborts the process: one wrapper for all routes',
  },
  {
    target: 'package:piscina',
    importer: 'src/lanes/lane-pool.ts',
    reason: 'Piscina owns spawn, crash and replacement of a lane: one place knows its traps',
  },
  {
    target: 'package:ioredis',
    importer: 'src/redis/connection.ts',
    reason:
      'by itself it sends commands twice, waits without end and goes on in another database: one place knows its traps',
  },
] as const

/** The one file that may read `process.env`: all faults of the environment are found in one place, and reported together. */
export const ENVIRONMENT_READER = 'src/config/load.ts'

/** Parts of the primary that no lane may load, not even by way of others. */
export const PRIMARY_ONLY = [
  'src/http/listener.ts',
  'src/lanes/supervisor.ts',
  'src/events/hub.ts',
  'src/main.ts',
] as const

/** @returns true when the rule binds the file and forbids the import */
export function forbids(rule: ImportRule, { from, to, typeOnly }: ImportRule['example']): boolean {
  const match = rule.from.exec(from)
  if (!match) return false
  const begins = (targets: readonly string[] | undefined) =>
    targets?.some((target) => to.startsWith(target === '{own}' ? match[1]! : target)) ?? false
  if (begins(rule.never)) return true
  return rule.may !== undefined && !begins(rule.may) && !(typeOnly && begins(rule.mayForTypes))
}
