import { DatabaseSync } from 'node:sqlite'

export default (get: (name: string) => string) => {
  const db = new DatabaseSync(`${get('TRIAL_FOLDER')}/looms.db`)
  db.exec('PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS loom (name TEXT)')
  return () => {
    db.prepare('INSERT INTO loom VALUES (?)').run('warp')
    return db.prepare('SELECT count(*) > 0 AS some FROM loom').get()
  }
}
