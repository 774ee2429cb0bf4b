import type { Edge } from './source-graph.ts'

/** The imports that the files of one folder may have beside each other. */
export interface Layer {
  /** A folder. `*` stands for one name; each folder that matches is a layer of its own. */
  folder: string
  reason: string
  /** Allowed targets: `node:`, `package:`, or the beginning of a path. */
  may: readonly string[]
  /** Further targets allowed for types alone. */
  types?: readonly string[]
}

/** The one reader of texts that people write. */
const TEXT_FILE = 'src/preload/text-file.cjs'
const FOUNDATION = ['node:', 'src/core/', 'src/transport/', TEXT_FILE] as const
const TYPES = ['src/contracts/', 'package:'] as const

/** The allowed imports: downwards only, and never from the primary into a lane or back. */
export const LAYERS: readonly Layer[] = [
  {
    folder: 'src/contracts/',
    reason: 'every layer imports these types, so they draw nothing in',
    may: [],
    types: ['node:', 'package:', 'src/core/'],
  },
  { folder: 'src/preload/', reason: 'it is what loads TypeScript', may: ['node:', 'package:esbuild', 'package:tsx'] },
  {
    folder: 'src/guardian/',
    reason: 'it is a process of its own, and has to be small',
    may: ['node:', 'src/core/schedule/thread-clock.cjs', 'src/core/modules/make-folder.cjs'],
  },
  {
    folder: 'src/core/',
    reason: 'it runs in any thread, before anything else',
    may: ['node:', 'package:croner', TEXT_FILE],
    types: TYPES,
  },
  { folder: 'src/transport/', reason: 'both sides of a ring stand on it', may: ['node:', 'src/core/'], types: TYPES },
  {
    folder: 'src/stores/',
    reason: 'implementations of db and state share it, and the streams',
    may: ['node:', 'package:', 'src/core/', TEXT_FILE],
    types: TYPES,
  },
  {
    folder: 'src/recording/',
    reason: 'traces and the history stand on it, and it knows neither',
    may: FOUNDATION,
    types: TYPES,
  },
  {
    folder: 'src/tracing/',
    reason: 'what it traces holds an interface, and null while tracing is off',
    may: [...FOUNDATION, 'src/recording/', 'package:'],
    types: TYPES,
  },
  {
    folder: 'src/history/',
    reason: 'what it records holds an interface; its own thread writes the file',
    may: [...FOUNDATION, 'src/recording/', 'src/stores/sqlite/'],
    types: TYPES,
  },
  {
    folder: 'src/runtime/',
    reason: 'it runs in every thread that hosts plugins',
    may: [...FOUNDATION, 'package:', 'src/stores/'],
    types: TYPES,
  },
  {
    folder: 'src/lane/',
    reason: 'a lane meets the primary only in frames and messages',
    may: [
      ...FOUNDATION,
      'src/guardian/process-tree.cjs',
      'src/history/recorder.ts',
      'src/runtime/',
      'src/index.ts',
      'package:zod',
    ],
    types: [...TYPES, 'src/tracing/'],
  },
  {
    folder: 'src/primary/',
    reason: 'the primary meets a lane only in frames and messages',
    may: [
      ...FOUNDATION,
      'package:',
      'src/guardian/process-tree.cjs',
      'src/guardian/service-manager.cjs',
      'src/preload/kept-folder.cjs',
      'src/preload/typescript/strip-ahead.cjs',
      'src/history/',
      'src/runtime/',
      'src/stores/',
      'src/tracing/',
    ],
    types: TYPES,
  },
  {
    folder: 'src/tools/*/',
    reason: 'a tool is swapped alone, by moving its folder',
    may: ['node:', 'package:', 'src/core/', 'src/stores/', 'src/transport/memory/'],
    types: TYPES,
  },
  {
    folder: 'src/extras/*/',
    reason: 'a tool is swapped alone, by moving its folder',
    may: ['node:', 'package:', 'src/core/', 'src/stores/', 'src/transport/memory/'],
    types: TYPES,
  },
  {
    folder: 'src/adapters/',
    reason: 'an application loads one, with the library that it is for',
    may: ['package:kysely', 'package:drizzle-orm', 'src/core/'],
    types: TYPES,
  },
  {
    folder: 'domains/*/',
    reason: 'domains talk by events, and know nothing of the inside of the runtime',
    may: ['node:', 'package:', 'src/index.ts'],
  },
]

/** The files that may import devtools. No file that serves a request is among them. */
export const DEVTOOLS_IMPORTERS = ['src/devtools/', 'src/index.ts', 'src/main.ts'] as const

/** Packages that only one file may load. Every file may import their types, which do not exist at run time. */
export const ONLY_IMPORTERS = [
  {
    target: 'package:uWebSockets.js',
    importer: 'src/primary/http/uws-library.ts',
    reason: 'an unguarded call of it aborts the process: one wrapper for all routes',
  },
  {
    target: 'package:ws',
    importer: 'src/primary/http/node/sockets.ts',
    reason: 'the listener on node:http alone has WebSockets of its own',
  },
  {
    target: 'package:piscina',
    importer: 'src/primary/supervision/lane-starter.ts',
    reason: 'Piscina owns spawn, crash and replacement of a lane: one place knows its traps',
  },
  {
    target: 'package:ioredis',
    importer: 'src/stores/redis/client.ts',
    reason:
      'by itself it sends commands twice, waits without end and goes on in another database: one place knows its traps',
  },
] as const

/** The one file that may read `process.env`, so that all faults of the environment are found in one place and reported together. */
export const ENVIRONMENT_READER = 'src/core/config/load.ts'
/** They read no setting: one hears what others read there, one copies it for a thread or process beside the lanes. */
export const ENVIRONMENT_PASSERS = ['src/lane/unseen-variables.ts', 'src/core/config/node-options.ts'] as const
/** Run before that file: each gives one variable its value, looks at a variable of the loader, or is the process that starts the runtime. */
export const PRELOADED = [
  'src/preload.cjs',
  'src/preload/launch.cjs',
  'src/preload/typescript/register.cjs',
  'src/preload/typescript/other-loader.cjs',
  'src/preload/typescript/strip.cjs',
  'src/guardian.cjs',
  'src/guardian/switch.cjs',
  'src/heddle.cjs',
  'src/guardian/guardian.cjs',
  // Marks what is started in a lane, whose environment it is.
  'src/lane/child-processes.ts',
] as const

/** @returns true when the file belongs to the layer and the layer forbids the import */
export function forbids({ folder, may, types = [] }: Layer, { from, to, typeOnly }: Omit<Edge, 'line'>): boolean {
  const own = new RegExp(`^${folder.replace('*', '[^/]+')}`).exec(from)?.[0]
  if (own === undefined || to.startsWith(own)) return false
  return ![...may, ...(typeOnly ? types : [])].some((allowed) => to.startsWith(allowed))
}

/** Folders that have folders of their own, each of which is a layer. */
const DIVIDED = ['core', 'devtools', 'primary', 'runtime', 'stores', 'tools', 'transport'] as const

/** The layer of a file: a folder of `src`, or one in a folder that is divided. */
export function layerOf(file: string): string {
  const [, folder = '', inner] = /^src\/([^/]+)\/(?:([^/]+)\/)?/.exec(file) ?? []
  return DIVIDED.some((each) => each === folder) && inner !== undefined ? `${folder}/${inner}` : folder
}

/** Layers that import each other, types included: one of the two arrows goes upwards. */
export function arrowsUpwards(edges: readonly Edge[]): string[] {
  const arrows = new Map<string, string[]>()
  for (const { from, to, line } of edges) {
    const [upper, lower] = [layerOf(from), layerOf(to)]
    // What lies in `src` itself is where a process or a plugin enters.
    if (!to.startsWith('src/') || upper === lower || upper === '' || lower === '') continue
    const key = `${upper} → ${lower}`
    arrows.set(key, [...(arrows.get(key) ?? []), `${from}:${line}`])
  }
  return [...arrows].flatMap(([arrow, places]) => {
    const [upper, lower] = arrow.split(' → ')
    const back = arrows.get(`${lower} → ${upper}`)
    return back === undefined || places.length > back.length ? [] : [`${arrow}: ${places.join(', ')}`]
  })
}
