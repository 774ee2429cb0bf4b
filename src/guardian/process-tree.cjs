// Processes that plugins have started, and what those have started: found and ended.
const { readdirSync, readFileSync, readlinkSync } = require('node:fs')

/** Taken before plugins can replace it. */
const kill = process.kill.bind(process)
/** A process that is just being ended may have started another one. */
const ROUNDS = 5

/**
 * All processes. A program may write its title over its environment (redis-server, Chromium), end and leave others, or begin a session of its own: so they are
 * told by all of this. Source: proc(5), /proc/pid/stat.
 * @returns null where it is not Linux, and where the folder has the numbers of another namespace
 */
function processTable() {
  try {
    if (readlinkSync('/proc/self') !== String(process.pid)) return null
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return new Map(pids.map((pid) => [Number(pid), statOf(pid)]).filter(([, stat]) => stat !== null))
  } catch {
    return null
  }
}

function statOf(pid) {
  const text = textOf(`/proc/${pid}/stat`)
  if (text === '') return null
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [parent, group, session] = fields.slice(1, 4).map(Number)
  return { isLiving: !/[ZX]/.test(fields[0]), parent, group, session, start: Number(fields[19]) }
}

/** As UTF-8, for which Node takes the least memory. Empty for a process that has ended, and for what another user's does not show. */
function textOf(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** When a process has begun, which no other one of this number has; 0 where that is not known. */
const startOf = (pid) => statOf(pid)?.start ?? 0

/** What lives of the trees of the leaders and of the mark. */
function treeOf({ leaders, mark, more = [] }, table) {
  // Everything that any runtime or lane has started has a mark that begins so.
  if (mark === '') throw new Error('The mark of processes is empty: it would be that of others, too')
  const { start: since } = table.get(process.pid)
  const tree = new Set(more)
  // Another process may have the number by now: one that has not begun then is left alone. Of one that has ended, its session may be left.
  for (const [pid, start] of leaders) if ((table.get(pid)?.start ?? start) === start) tree.add(pid)
  if (mark !== null) {
    // What it has started itself may have marks of its own.
    const isMarked = (environ) => environ.includes(`HEDDLE_RUN=${mark}\0`) || environ.includes(`HEDDLE_RUN=${mark}/`)
    for (const [pid, { start }] of table) if (start >= since && isMarked(textOf(`/proc/${pid}/environ`))) tree.add(pid)
  }
  for (let size = -1; size !== tree.size; ) {
    size = tree.size
    for (const [pid, { parent, session }] of table) if (tree.has(parent) || tree.has(session)) tree.add(pid)
  }
  tree.delete(process.pid)
  return { tree, living: [...tree].filter((pid) => table.get(pid)?.isLiving) }
}

/**
 * The processes of leaders and of a mark that live, with all that they have started. Elsewhere than on Linux these are the groups of the leaders, each as the
 * negative number by which it gets signals.
 * @param of `leaders`: those that lead a group and a session of their own, each with its `startOf`. `mark`: value of `HEDDLE_RUN` in the environment that they
 * were started with; null when only the leaders are wanted
 */
function findTree(of, table = processTable()) {
  if (table !== null) return treeOf(of, table).living
  return [...of.leaders.keys()].map((pid) => -pid).filter((group) => signal(group, 0))
}

/** Ends all of them, as `findTree` finds them. @param more processes that end with all that they have started, too */
function endTree(of, more = []) {
  const seen = new Set()
  for (let round = 0; round < ROUNDS; round++) {
    const table = processTable()
    if (table === null) {
      for (const group of findTree(of, null)) signal(group, 'SIGKILL')
      return
    }
    const { tree, living } = treeOf({ ...of, more: [...more, ...seen] }, table)
    const found = living.filter((pid) => !seen.has(pid))
    if (found.length === 0) return
    for (const pid of found) {
      seen.add(pid)
      const { group } = table.get(pid)
      // One that starts others all the time is ended with them.
      if (!tree.has(group) || !signal(-group, 'SIGKILL')) signal(pid, 'SIGKILL')
    }
  }
}

/** False when it has ended by itself. */
function signal(pid, name) {
  try {
    return kill(pid, name)
  } catch {
    return false
  }
}

module.exports = { endTree, findTree, processTable, signal, startOf }
