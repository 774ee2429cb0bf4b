import mysql from 'mysql2/promise'

export default (get: (name: string) => string) => {
  const pool = mysql.createPool({ uri: get('TRIAL_MYSQL'), connectionLimit: 4 })
  return async () => (await pool.query('SELECT SUM(seq) AS sum FROM seq_1_to_1000'))[0]
}
