"""An order as one synchronous transaction: take a unit from the row of the stock, insert the order.

It is exact. The row lock of the sale is held until the commit is on the disk.
"""

from pymysql.cursors import Cursor

from plaza.infra.mysql import mysql

TABLES = (
    "CREATE TABLE transaction_stock (voucher_id BIGINT PRIMARY KEY, stock INT NOT NULL)",
    "CREATE TABLE transaction_order (id BIGINT AUTO_INCREMENT PRIMARY KEY,"
    " voucher_id BIGINT NOT NULL, buyer_id BIGINT NOT NULL, UNIQUE KEY (voucher_id, buyer_id))",
)


def order(voucher_id: int, buyer_id: int) -> None:
    """Sell one unit. Raises LookupError when none is left."""

    def write(cursor: Cursor) -> None:
        cursor.execute(
            "UPDATE transaction_stock SET stock = stock - 1 WHERE voucher_id = %s AND stock > 0",
            (voucher_id,),
        )
        if cursor.rowcount == 0:
            raise LookupError(voucher_id)
        cursor.execute(
            "INSERT INTO transaction_order (voucher_id, buyer_id) VALUES (%s, %s)",
            (voucher_id, buyer_id),
        )

    mysql.run_in_transaction(write)
