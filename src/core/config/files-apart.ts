import { readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Settings } from './schema.ts'

/** What SQLite and the tool `db` keep beside a database. */
const BESIDE = ['', '-wal', '-shm', '-journal', '-claim', '-reserve']
/** Links that lead to one another, before they are taken for a circle. */
const LINKS_MAX = 40

/**
 * The history is written without a sync, and anew for another version of its tables: none of its files may be one of the database.
 * @param faults gets a line when one is
 */
export function keepFilesApart(
  { historyEnabled, historyPath, sqlitePath }: Pick<Settings, 'historyEnabled' | 'historyPath' | 'sqlitePath'>,
  faults: string[],
): void {
  // A setting that has a fault is missing here.
  if (!historyEnabled || historyPath === undefined || sqlitePath === undefined) return
  const ofDatabase = new Set(BESIDE.flatMap((ending) => namesOf(sqlitePath + ending)))
  const shared = BESIDE.flatMap((ending) => namesOf(historyPath + ending)).some((name) => ofDatabase.has(name))
  if (shared)
    faults.push(
      `HISTORY_PATH: expected another file than SQLITE_PATH (${sqlitePath}), got ${JSON.stringify(historyPath)}, which is the same or beside it; set HISTORY_PATH`,
    )
}

/** What a file is known by: its place, whatever links lead there, and, once it is there, its device and inode. */
function namesOf(path: string): string[] {
  const place = placeOf(path, LINKS_MAX)
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return [place, `${dev}:${ino}`]
  } catch {
    return [place]
  }
}

function placeOf(path: string, linksLeft: number): string {
  try {
    return realpathSync(path)
  } catch {
    // It is not there yet, or a link leads to what is not there.
  }
  const link = linksLeft === 0 ? null : linkOf(path)
  if (link !== null) return placeOf(resolve(dirname(path), link), linksLeft - 1)
  return dirname(path) === path ? path : join(placeOf(dirname(path), linksLeft), basename(path))
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch {
    return null
  }
}
