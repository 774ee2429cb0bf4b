import Database from 'better-sqlite3'

export default (get: (name: string) => string) => {
  const db = new Database(`${get('TRIAL_FOLDER')}/looms.db`, { timeout: 10_000 })
  db.pragma('journal_mode = WAL')
  db.exec('CREATE TABLE IF NOT EXISTS loom (name TEXT)')
  return () => {
    db.prepare('INSERT INTO loom VALUES (?)').run('warp')
    return db.prepare('SELECT count(*) > 0 AS some FROM loom').get()
  }
}
