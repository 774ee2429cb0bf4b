import { Pool } from 'pg'

export default (get: (name: string) => string) => {
  const pool = new Pool({ connectionString: get('TRIAL_PG'), max: 4 })
  pool.on('error', () => {})
  return async () => (await pool.query('SELECT sum(n) FROM generate_series(1, 1000) AS n')).rows[0].sum
}
