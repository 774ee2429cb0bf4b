// Says which variables packages and plugins ask `process.env` for, that the process has and lanes have not. Names, never values.
import { basename } from 'node:path'
import { causality } from '../core/causality/context.ts'
import { VARIABLES } from '../core/config/schema.ts'
import { hiddenVariables } from '../core/errors/description.ts'
import { FRAMES_MAX, framesHere, isOfPlugin, isOfRuntime, type SourcePlace } from '../core/errors/places.ts'

/** Whoever runs a process sets these, and packages look at them for colours and paths: nothing fails without them. */
const QUIET = /^(?:npm_|INIT_CWD$|CI$|GITHUB_|TERM_|XDG_)/
/** This file, as it is loaded and as source maps name it. */
const HERE = /[\\/]unseen-variables\.[jt]s$/
const PACKAGE = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/

export interface Unseen {
  /** The variables of the process, without the secrets of the runtime. */
  names: readonly string[]
  /** Those secrets. */
  secrets: readonly string[]
  /** The file of a plugin. */
  fileOf: (plugin: string) => string | undefined
  /** Called once for each name. */
  tell: (name: string, message: string, plugin: string | undefined) => void
}

/** Where an error names one of the process that this lane has not, its message says so, in production, too. */
export function noteHiddenVariables(names: readonly string[]): void {
  // A setting of the runtime is for the runtime alone: that an error names it says nothing of the lane.
  for (const name of names) if (!(name in process.env) && !(name in VARIABLES)) hiddenVariables.add(name)
}

/**
 * Where `process.env` has no such name, it looks into its prototype, and there it is heard. So `process.env` stays the object that it is, for whoever
 * copies, lists or writes it, and a name that it has costs nothing more.
 */
export function watchUnseenVariables({ names, secrets, fileOf, tell }: Unseen): void {
  const unseen = new Set([...names, ...secrets].filter((name) => !(name in process.env) && !QUIET.test(name)))
  const heard = (name: string | symbol): void => {
    if (typeof name !== 'string' || !unseen.has(name)) return
    const reader = whoAsks(fileOf)
    if (reader === undefined) return
    unseen.delete(name)
    tell(name, `${reader.asks} \`${name}\`${secrets.includes(name) ? SECRET : reader.fix(name)}`, reader.plugin)
  }
  const prototype = Object.getPrototypeOf(process.env)
  const listening = new Proxy(prototype, {
    get(target, name) {
      heard(name)
      return Reflect.get(target, name)
    },
    has(target, name) {
      heard(name)
      return Reflect.has(target, name)
    },
  })
  Object.setPrototypeOf(process.env, listening)
}

const SECRET =
  ', a secret of the runtime, which no lane sees: use the tool that has it, or read a variable of another name with `config.get`'

/** Undefined where it is the runtime itself, or Node, for themselves. */
function whoAsks(fileOf: Unseen['fileOf']) {
  // The load of a package has ten frames for each of its files.
  const frames = stack()
  const [reader] = frames
  const plugin = causality.getStore()?.origin?.plugin
  if (reader === undefined) return undefined
  if (isOfPlugin(reader.file)) {
    return {
      asks: `\`${basename(reader.file)}\` asked \`process.env\` for`,
      fix: (name: string) =>
        `, which lanes do not see: read it with \`config.get('${name}')\`${name in VARIABLES ? '' : ', or add it to `LANE_ENV`'}`,
      plugin,
    }
  }
  if (isOfRuntime(reader.file)) return undefined
  // The loader of TypeScript stands between a package and who loads it.
  const caller = frames.find(({ file }) => isOfPlugin(file) || (isOfRuntime(file) && !/[\\/]preload[\\/]/.test(file)))
  const file = caller === undefined && plugin !== undefined ? fileOf(plugin) : caller?.file
  const name = PACKAGE.exec(reader.file)?.[1]?.replace('\\', '/')
  // A tool of the runtime uses the package.
  if (name === undefined || (file !== undefined && isOfRuntime(file))) return undefined
  return {
    asks: `\`${name}\`${file === undefined ? '' : ` (in \`${basename(file)}\`)`} asked for`,
    fix: (name: string) =>
      name in VARIABLES
        ? `, a setting of the runtime, which lanes do not see: read it with \`config.get('${name}')\` and pass it on`
        : ', which lanes do not see: add it to `LANE_ENV`',
    plugin,
  }
}

function stack(): SourcePlace[] {
  return framesHere(FRAMES_MAX).filter(({ file }) => !HERE.test(file))
}
