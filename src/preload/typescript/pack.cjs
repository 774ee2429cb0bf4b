// All modules that a thread of a program loads, in one file: texts, compiled code, and what they mean by the names that they import.
const { hash } = require('node:crypto')
const { closeSync, openSync, readSync, realpathSync, statSync } = require('node:fs')
const { Module } = require('node:module')
const { join } = require('node:path')
const { cachedDataVersionTag } = require('node:v8')
const { constants, Script } = require('node:vm')
const { getEnvironmentData, isMainThread, setEnvironmentData } = require('node:worker_threads')
const { isOurs, keptFolder, PACKAGES, ROOT, SOURCE, writeWhole } = require('../kept-folder.cjs')

/** Under which a thread finds the program that it belongs to. */
const PROGRAM = 'heddle: program'
/** What package managers write whenever they change a package: by then a name may mean another file. */
const INSTALLATION = ['', '.package-lock.json', '.modules.yaml', '.yarn-state.yml', '.yarn-integrity']
/** What V8 makes of a text depends on it; the flags of the process belong to it. At the end, the form of a pack: count it up when that changes. */
const ENGINE = `${process.version} ${process.arch} ${cachedDataVersionTag()} form 4`
/** By then a service has started, and the functions that a start needs are compiled. */
const STARTED_MS = 2000
/** A file that was changed less than this ago may change again without a sign. */
const SETTLED_MS = 1000
/** A few modules that have changed are loaded without the pack: to pack everything again would cost more. */
const FEW = 10
/** V8 copies compiled code that begins elsewhere. */
const ALIGNED_BYTES = 8
/** Where the index begins and ends. */
const HEAD_BYTES = 8
const [HEAD, END] = Module.wrapper

/** @returns {Pack | null} null for a thread of another program than the runtime's own, which start again and again */
exports.openPack = () => {
  const program = isMainThread ? ownProgram() : getEnvironmentData(PROGRAM)
  if (!program?.startsWith(SOURCE)) return null
  if (isMainThread) setEnvironmentData(PROGRAM, program)
  return new Pack(join(keptFolder, 'packs', hash('sha1', `${ENGINE}\n${program} ${isMainThread}`)))
}

/** What npm names as a command is a link. */
function ownProgram() {
  const [, program] = process.argv
  if (program === undefined || program.startsWith(SOURCE)) return program
  try {
    return realpathSync(program)
  } catch {
    return undefined
  }
}

/**
 * Node looks for each module in folders, reads a source, a stripped text and compiled code, and V8 optimizes the functions that do so: a fifth of a start,
 * and 10 MB of a process. A module is as it was packed while its own file has not changed.
 */
class Pack {
  #file
  /** Null where there is none. */
  #fd = null
  /** What was read last: as a whole the file takes several megabytes, and each thread would have its own. */
  #part = Buffer.alloc(0)
  /** By path: what the file was, and where its parts lie. */
  #modules = new Map()
  /** By the path of a module: the paths of what it imports, by the names that it uses. */
  #names = {}
  /** What this thread has loaded, by path. */
  #loaded = new Map()
  #fresh = 0
  #hasEnded = false
  #installation = INSTALLATION.map((name) => statSync(PACKAGES + name, { throwIfNoEntry: false })?.mtimeMs ?? 0).join(
    ' ',
  )

  constructor(file) {
    this.#file = file
    try {
      this.#fd = openSync(file)
      const head = this.#read(0, HEAD_BYTES)
      const [begin, end] = [head.readUInt32LE(0), head.readUInt32LE(4)]
      const { modules, names, installation } = JSON.parse(this.#read(begin, end).utf8Slice())
      if (installation === this.#installation) {
        this.#modules = new Map(modules.map((packed) => [packed.path, packed]))
        this.#names = names
      }
    } catch {
      // Not packed yet, or damaged.
    }
    setTimeout(() => this.#end(), STARTED_MS).unref()
    process.once('exit', () => this.#end())
  }

  /** @returns {string | undefined} undefined for what Node has to resolve */
  pathOf(importer, name) {
    return this.#names[importer]?.[name]
  }

  /** @returns {Script | null} null for what is not packed, or has changed since */
  scriptOf(path) {
    const packed = this.#modules.get(path)
    if (packed === undefined || packed.stamp !== stampOf(path)) return null
    const [begin, middle, end] = packed.at
    const bytes = this.#read(begin, end)
    if (bytes === null) return null
    const text = packed.isWide ? bytes.ucs2Slice(0, middle - begin) : bytes.latin1Slice(0, middle - begin)
    const script = compile(path, text, bytes.subarray(align(middle) - begin))
    if (script.cachedDataRejected) return null
    this.#loaded.set(path, { stamp: packed.stamp, text, script })
    return script
  }

  /** Compiles a module that is not packed. @returns {Script | null} null for what is no CommonJS: Node tells which it is */
  compile(path, body) {
    const text = HEAD + body + END
    try {
      const script = compile(path, text)
      const stamp = this.#hasEnded ? null : stampOf(path)
      if (stamp !== null) {
        this.#loaded.set(path, { stamp, text, script })
        this.#fresh++
      }
      return script
    } catch {
      return null
    }
  }

  /** What a module has imported. */
  addName(importer, name, path) {
    if (this.#hasEnded || !isOurs(importer) || !isOurs(path)) return
    // What has loaded the runtime decides what is meant by its own name.
    if (!name.startsWith('.') && !name.startsWith(ROOT) && !path.includes('/node_modules/')) return
    this.#names[importer] ??= {}
    this.#names[importer][name] = path
  }

  /** @returns {Buffer | null} what lies there, until something else is read; null when the file is cut off */
  #read(begin, end) {
    const bytes = end - begin
    if (this.#part.length < bytes) this.#part = Buffer.allocUnsafeSlow(bytes)
    return readSync(this.#fd, this.#part, 0, bytes, begin) === bytes ? this.#part.subarray(0, bytes) : null
  }

  /** Until then it takes memory that the program itself does not. */
  #end() {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#fresh > (this.#modules.size > 0 ? FEW : 0)) this.#write()
    if (this.#fd !== null) closeSync(this.#fd)
    this.#part = Buffer.alloc(0)
    this.#modules.clear()
    this.#names = {}
    this.#loaded.clear()
  }

  #write() {
    const parts = []
    let length = HEAD_BYTES
    const append = (bytes) => {
      parts.push(bytes, Buffer.alloc(align(bytes.length) - bytes.length))
      length = align(length + bytes.length)
    }
    const modules = [...this.#loaded].map(([path, { stamp, text, script }]) => {
      const isWide = /[^\0-\xff]/.test(text)
      const own = Buffer.from(text, isWide ? 'utf16le' : 'latin1')
      const code = script.createCachedData()
      const at = [length, length + own.length, align(length + own.length) + code.length]
      append(own)
      append(code)
      return { path, stamp, isWide, at }
    })
    const index = Buffer.from(JSON.stringify({ modules, names: this.#names, installation: this.#installation }))
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeUInt32LE(length, 0)
    head.writeUInt32LE(length + index.length, 4)
    writeWhole(this.#file, Buffer.concat([head, ...parts, index]))
  }
}

const align = (at) => Math.ceil(at / ALIGNED_BYTES) * ALIGNED_BYTES

const compile = (path, text, cachedData) =>
  new Script(text, {
    filename: path,
    // The first line is where the module's own begins.
    columnOffset: -HEAD.length,
    cachedData,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })

/** Null for what is no file, or has just been changed. */
function stampOf(path) {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined || Date.now() - Math.max(stat.mtimeMs, stat.ctimeMs) < SETTLED_MS) return null
  return `${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`
}
