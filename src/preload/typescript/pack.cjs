// All modules of a program, or of its lanes, in one file, with what the names in them mean.
const { closeSync, fstatSync, openSync, readdirSync, readSync, realpathSync, rmSync, statSync } = require('node:fs')
const { join } = require('node:path')
const { getEnvironmentData, isMainThread, setEnvironmentData } = require('node:worker_threads')
const { isOurs, keptFolder, keptModuleFile, PACKAGES, ROOT, SOURCE } = require('./places.cjs')
const { compile, ENGINE, isOneByte, isSettled, STARTED_MS, writeWhole } = require('./script.cjs')

/** Files of tests are many, and each is loaded by few. */
const TESTS = `${ROOT}test/`
/** Under which a thread finds the program that it belongs to. */
const PROGRAM = 'heddle: program'
/** What package managers write whenever they change a package: by then a name may mean another file. */
const INSTALLATION = ['', '.package-lock.json', '.modules.yaml', '.yarn-state.yml', '.yarn-integrity']
/** A few modules that have changed are loaded without the pack: to pack everything again would cost more. */
const FEW = 10
/** V8 copies compiled code that begins elsewhere. */
const ALIGNED_BYTES = 8
const TAIL_BYTES = 4
/** Of each folder. What a repository and its tests keep is 60 MB. */
const KEPT_BYTES = 256 * 2 ** 20

/** @returns {Pack | null} null for a thread of another program than the runtime's own, which start again and again */
exports.openPack = () => {
  if (keptFolder === null) return null
  const program = isMainThread ? ownProgram() : getEnvironmentData(PROGRAM)
  if (!program?.startsWith(SOURCE)) return null
  if (isMainThread) setEnvironmentData(PROGRAM, program)
  return new Pack(keptModuleFile(`${ENGINE}\n${program} ${isMainThread}`))
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
 * All modules that the threads of a program load, in one file: texts, compiled code, and what they mean by the names that they import. Node
 * looks for each of them in folders, and V8 optimizes the functions that do so: a third of the start of a thread.
 * A module is as it was packed while its own file has not changed.
 */
class Pack {
  #path
  /** @type {PackFile | null} null where there is none */
  #file = null
  /** By path: what the file was, and where its parts lie. */
  #modules
  /** By the path of a module: the paths of what it imports, by the names that it uses. */
  #names
  /** Modules that were loaded, and are not packed. */
  #fresh = new Map()
  #hasEnded = false
  #installation = installation()

  constructor(path) {
    this.#path = path
    this.#read()
    // Until then it takes memory that the program itself does not.
    setTimeout(() => this.#end(), STARTED_MS).unref()
    process.once('exit', () => this.#end())
  }

  /** @returns {string | undefined} undefined for what Node has to resolve */
  pathOf(importer, name) {
    return this.#names[importer]?.[name]
  }

  /** @returns {import('node:vm').Script | null} null for what is not packed, or has changed since */
  scriptOf(path) {
    const packed = this.#modules.get(path)
    if (packed === undefined || !isSame(packed.file, statSync(path, { throwIfNoEntry: false }))) return null
    const [begin, textEnd] = packed.text
    const [codeBegin, end] = packed.code
    const bytes = this.#file.read([begin, end])
    if (bytes === null) return null
    const text = packed.isOneByte ? bytes.latin1Slice(0, textEnd - begin) : bytes.utf8Slice(0, textEnd - begin)
    const script = compile(path, text, bytes.subarray(codeBegin - begin))
    return script.cachedDataRejected ? null : script
  }

  /** A module that was loaded from elsewhere. */
  add(path, text, script) {
    const stat = this.#hasEnded || !isPacked(path) ? undefined : statSync(path, { throwIfNoEntry: false })
    if (stat !== undefined && isSettled(stat))
      this.#fresh.set(path, { file: [stat.mtimeMs, stat.ctimeMs, stat.size], text, script })
  }

  /** What a module has imported. */
  addName(importer, name, path) {
    if (this.#hasEnded || !isPacked(importer) || !isPacked(path)) return
    // What has loaded the runtime decides what is meant by its own name.
    if (!name.startsWith('.') && !name.startsWith(ROOT) && !path.includes('/node_modules/')) return
    this.#names[importer] ??= {}
    this.#names[importer][name] = path
  }

  #read() {
    this.#modules = new Map()
    this.#names = {}
    try {
      this.#file = new PackFile(this.#path)
      const { modules, names, installation } = this.#file.readIndex()
      if (installation !== this.#installation) return
      for (const packed of modules) this.#modules.set(packed.path, packed)
      this.#names = names
    } catch {
      // Not packed yet, or damaged.
    }
  }

  #end() {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (this.#fresh.size > (this.#modules.size > 0 ? FEW : 0)) this.#write()
    this.#close()
    this.#modules = new Map()
    this.#names = {}
    this.#fresh.clear()
  }

  #close() {
    this.#file?.close()
    this.#file = null
  }

  /** Adds to what other threads have packed meanwhile. */
  #write() {
    const own = this.#names
    this.#close()
    this.#read()
    for (const [importer, paths] of Object.entries(own)) this.#names[importer] = { ...this.#names[importer], ...paths }
    const parts = []
    let length = 0
    const append = (bytes) => {
      const at = length
      const padding = Buffer.alloc(-bytes.length & (ALIGNED_BYTES - 1))
      parts.push(bytes, padding)
      length += bytes.length + padding.length
      return [at, at + bytes.length]
    }
    const modules = []
    for (const packed of this.#modules.values()) {
      const bytes = this.#fresh.has(packed.path) ? null : this.#file.read([packed.text[0], packed.code[1]])
      if (bytes === null) continue
      // The text and its code lie behind each other as they will again.
      const moved = append(Buffer.from(bytes))[0] - packed.text[0]
      const [text, code] = [packed.text, packed.code].map((place) => place.map((at) => at + moved))
      modules.push({ ...packed, text, code })
    }
    for (const [path, { file, text, script }] of this.#fresh) {
      const places = { text: append(Buffer.from(text)), code: append(script.createCachedData()) }
      modules.push({ path, file, isOneByte: isOneByte(text), ...places })
    }
    const tail = Buffer.alloc(TAIL_BYTES)
    tail.writeUInt32LE(length)
    writeWhole(
      this.#path,
      [...parts, Buffer.from(JSON.stringify({ modules, names: this.#names, installation: this.#installation })), tail],
      true,
    )
    for (const folder of ['maps', 'modules', 'written']) trim(join(keptFolder, folder))
  }
}

function isPacked(path) {
  return isOurs(path) && !path.startsWith(TESTS) && /\.(?:js|cjs|ts)$/.test(path)
}

function isSame([mtimeMs, ctimeMs, size], stat) {
  return stat !== undefined && stat.mtimeMs === mtimeMs && stat.ctimeMs === ctimeMs && stat.size === size
}

function installation() {
  return INSTALLATION.map((name) => statSync(PACKAGES + name, { throwIfNoEntry: false })?.mtimeMs ?? 0).join(' ')
}

/**
 * The file of a pack, of which a part at a time is read: as a whole it takes several megabytes, and each thread would have its own. The parts come
 * first, then the index, then where the index begins.
 */
class PackFile {
  #fd
  #part = Buffer.alloc(0)

  /** @throws where there is none */
  constructor(path) {
    this.#fd = openSync(path)
  }

  /** @throws when the file is damaged */
  readIndex() {
    const end = fstatSync(this.#fd).size - TAIL_BYTES
    const begin = this.read([end, end + TAIL_BYTES]).readUInt32LE(0)
    return JSON.parse(this.read([begin, end]).utf8Slice())
  }

  /** @returns {Buffer | null} what lies there, until the next part is read; null when it is cut off */
  read([begin, end]) {
    const bytes = end - begin
    if (this.#part.length < bytes) this.#part = Buffer.allocUnsafeSlow(bytes)
    return readSync(this.#fd, this.#part, 0, bytes, begin) === bytes ? this.#part.subarray(0, bytes) : null
  }

  close() {
    closeSync(this.#fd)
    this.#part = Buffer.alloc(0)
  }
}

/** Removes what was written longest ago from a folder that has grown too large: of copies that are gone, of versions before this one. */
function trim(folder) {
  try {
    trimTo(folder, KEPT_BYTES)
  } catch {
    // Somebody has removed the folder: there is nothing to remove.
  }
}

function trimTo(folder, keptBytes) {
  const files = readdirSync(folder).map((name) => {
    const path = join(folder, name)
    const { mtimeMs = 0, size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    return { path, mtimeMs, size }
  })
  let bytes = 0
  for (const { path, size } of files.sort((one, other) => other.mtimeMs - one.mtimeMs)) {
    bytes += size
    if (bytes > keptBytes) rmSync(path, { force: true })
  }
}
