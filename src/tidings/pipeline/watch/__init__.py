"""`tidings watch`: are contracts kept, while the overlay runs?"""
