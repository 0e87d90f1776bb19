def main():
    return "", []
